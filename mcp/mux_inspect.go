// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/seam"
)

// An outerMiddleware is middleware around a mux that can be added and removed while the mux is
// serving. The last one is outermost: Mux.Use would put it inside the middleware that rejects
// requests.
type outerMiddleware struct{ wrap Middleware }

// wrapOuter wraps the mux in mw until stop is called.
func (g *registry) wrapOuter(mw Middleware) (stop func()) {
	o := &outerMiddleware{mw}
	must(g.change(func(next *snapshot) error {
		next.outermost = append(slices.Clone(next.outermost), o)
		return nil
	}))
	return func() {
		must(g.change(func(next *snapshot) error {
			next.outermost = slices.DeleteFunc(slices.Clone(next.outermost), func(other *outerMiddleware) bool { return other == o })
			return nil
		}))
	}
}

// registrations returns the registrations of a mux and of the muxes mounted in it.
func (g *registry) registrations() []seam.Registration {
	s := g.load()
	around := functions(s.use)
	var all []seam.Registration
	for _, t := range s.all() {
		for _, e := range *t {
			all = append(all, seam.Registration{
				Kind: e.kind, Name: e.name, Site: e.site, Handler: fmt.Sprintf("%T", e.registered),
				Middleware: slices.Concat(around, functions(e.around)),
			})
		}
	}
	for _, mt := range s.mounts {
		all = append(all, mt.registrations(around)...)
	}
	return all
}

// registrations returns the mount and, if its handler is a Mux, the registrations of that
// mux. around is the middleware of the outer mux.
func (mt *mount) registrations(around []seam.Function) []seam.Registration {
	around = slices.Concat(around, functions(mt.around))
	all := []seam.Registration{{Kind: "mount", Name: string(mt.prefix), Site: mt.site, Handler: fmt.Sprintf("%T", mt.handler), Middleware: around}}
	if mt.child == nil {
		return all
	}
	for _, r := range mt.child.registrations() {
		if r.Kind != "method" {
			r.Name, r.Middleware = mt.outer(r.Kind, r.Name), slices.Concat(around, r.Middleware)
			all = append(all, r)
		}
	}
	return all
}

// functions returns the names and sites of middleware functions.
func functions(mw []Middleware) []seam.Function {
	all := make([]seam.Function, len(mw))
	for i, m := range mw {
		all[i] = functionOf(m)
	}
	return all
}

// functionOf returns the name, such as "middleware.Logger", and the site of the function
// that created a middleware, or of the middleware itself.
func functionOf(m Middleware) seam.Function {
	fn := runtime.FuncForPC(reflect.ValueOf(m).Pointer())
	if fn == nil {
		return seam.Function{}
	}
	file, line := fn.FileLine(fn.Entry())
	return seam.Function{Name: functionName(fn.Name(), file), Site: fmt.Sprintf("%s:%d", filepath.Base(file), line)}
}

// functionName returns the name of a function without the path of its package. For a
// closure, it returns the name of the enclosing function. If the compiler has inlined that
// function, the closure is named after both, as in main.main.RequestID.func1; the package
// is then derived from the file.
func functionName(name, file string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	name, _, _ = strings.Cut(name, ".func")
	if parts := strings.Split(name, "."); len(parts) > 2 && !strings.Contains(name, "(") {
		return filepath.Base(filepath.Dir(file)) + "." + parts[len(parts)-1]
	}
	return strings.TrimSuffix(name, "-fm") // a method value
}

// subscriptions returns the subscriptions of a hub, sorted by the number of pending changes,
// most first.
func (h *hub) subscriptions() []seam.Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]seam.Subscription, 0, len(h.listeners))
	for l := range h.listeners {
		all = append(all, l.subscription())
	}
	slices.SortFunc(all, func(a, b seam.Subscription) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Covers, b.Covers))
	})
	return all
}

func (l *listener) subscription() seam.Subscription {
	waiting, all := l.changes.Len()
	if all {
		waiting = len(l.covered)
	}
	return seam.Subscription{Caller: l.subject, Covers: len(l.covered), Waiting: waiting}
}

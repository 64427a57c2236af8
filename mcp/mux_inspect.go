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
// serving. Without one, the only cost is loading a pointer.
type outerMiddleware struct{ wrap Middleware }

// wrapOuter wraps the mux in mw until stop is called.
func (g *registry) wrapOuter(mw Middleware) (stop func()) {
	o := &outerMiddleware{mw}
	g.setOutermost(func(all []*outerMiddleware) []*outerMiddleware { return append(all, o) })
	return func() {
		g.setOutermost(func(all []*outerMiddleware) []*outerMiddleware {
			return slices.DeleteFunc(all, func(other *outerMiddleware) bool { return other == o })
		})
	}
}

// setOutermost replaces the outer middleware with the result of change, which it calls with a
// copy of the current list.
func (g *registry) setOutermost(change func([]*outerMiddleware) []*outerMiddleware) {
	registering.Lock()
	defer registering.Unlock()
	var all []*outerMiddleware
	if before := g.outermost.Load(); before != nil {
		all = slices.Clone(*before)
	}
	if all = change(all); len(all) == 0 {
		g.outermost.Store(nil)
		return
	}
	g.outermost.Store(&all)
}

// applyOuter returns h wrapped in the outer middleware. The last one is outermost.
func applyOuter(h Handler, outermost []*outerMiddleware) Handler {
	for _, o := range outermost {
		h = o.wrap(h)
	}
	return h
}

// registrations returns the registrations of a mux and of the muxes mounted in it.
func (g *registry) registrations() []seam.Registration {
	s := g.load()
	around := functions((*g.chain.Load())().around)
	var all []seam.Registration
	for _, entries := range [][]*entry{byName(s.tools), byName(s.prompts), byName(s.resources), s.templates, byName(s.methods)} {
		for _, e := range entries {
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
	all := []seam.Registration{{Kind: "mount", Name: mt.prefix, Site: mt.site, Handler: fmt.Sprintf("%T", mt.handler), Middleware: around}}
	child, ok := mt.handler.(*Mux)
	if !ok {
		return all
	}
	for _, r := range child.registrations() {
		if name, ok := mt.outerName(r.Kind, r.Name); ok {
			r.Name, r.Middleware = name, slices.Concat(around, r.Middleware)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	return seam.Subscription{Caller: l.caller.subject, Covers: len(l.covered), Waiting: len(l.pending)}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/internal/uritemplate"
)

// A registry is shared by a Mux and its views. Requests use a snapshot of the registrations.
// A change builds a new snapshot from the current one, checks it, and replaces it.
type registry struct {
	opts     MuxOptions
	info     Implementation
	infoJSON json.RawMessage // sent in results of server/discover

	briefJSON json.RawMessage // sent in all other results, without icons and descriptions to keep them small
	sealer    *sealer
	hub       *hub
	bus       *bus          // nil if there are no other replicas
	declared  atomic.Uint32 // the features of which clients have been told
	warned    onceEach      // URIs that no registration matches

	mu   sync.Mutex // serializes changes; it also guards the middleware of views
	snap atomic.Pointer[snapshot]
}

// An entry is one registered handler.
type entry struct {
	kind, name string
	key        string       // the name or, for resources, its normal form
	registered Handler      // the handler that was registered
	handler    Handler      // registered, wrapped in its middleware
	sealer     *sealer      // seals the state of the handler's questions
	site       string       // where it was registered
	around     []Middleware // outermost first
	described  Description
	extension  extension

	tool     *Tool
	headers  []paramHeader
	prompt   *Prompt
	resource *Resource
	listed   *ResourceTemplate
	template *uritemplate.Template
	checking chan struct{} // limits the runs of the handler for subscriptions; see maxSubscribeRuns
	lister   lister
	warned   sync.Once // for warnListed
	public   bool      // whether the lister's results may be cached for all callers
	enums    map[string][]string
}

// A snapshot holds the registrations of a mux. It does not change once requests can see it.
type snapshot struct {
	tools, prompts, resources, templates, methods table

	bySpecificity []*entry // the templates, more specific ones first
	mounts        []*mount // by prefix
	use           []Middleware
	chain         func() Handler     // returns the mux wrapped in use
	outermost     []*outerMiddleware // usually nil

	extensions       func() Extensions // returns those used by tools, prompts and resources
	methodExtensions func() Extensions // returns those used by handlers of methods
}

// A table holds entries sorted by key.
type table []*entry

// search returns the index of an entry, or where it would be inserted.
func (t table) search(key string) (i int, found bool) {
	return slices.BinarySearchFunc(t, key, func(e *entry, key string) int { return strings.Compare(e.key, key) })
}

// find returns the entry with a key, or nil.
func (t table) find(key string) *entry {
	if i, found := t.search(key); found {
		return t[i]
	}
	return nil
}

// tables returns the tables that hold the entries of a kind.
func (s *snapshot) tables(kind string) []*table {
	switch kind {
	case "tool":
		return []*table{&s.tools}
	case "prompt":
		return []*table{&s.prompts}
	case "resource":
		return []*table{&s.resources, &s.templates}
	default:
		return []*table{&s.methods}
	}
}

// all returns the tables in the order in which they are shown.
func (s *snapshot) all() []*table {
	return []*table{&s.tools, &s.prompts, &s.resources, &s.templates, &s.methods}
}

// next returns a copy of s that can be changed.
func (s *snapshot) next() *snapshot {
	n := *s
	for _, t := range n.all() {
		*t = append(make(table, 0, len(*t)+1), *t...) // usually, one is added
	}
	n.bySpecificity, n.mounts = slices.Clone(n.bySpecificity), slices.Clone(n.mounts)
	n.extensions = sync.OnceValue(func() Extensions { return extensionsOf(n.tools, n.prompts, n.resources, n.templates) })
	n.methodExtensions = sync.OnceValue(func() Extensions { return extensionsOf(n.methods) })
	return &n
}

// load returns the current snapshot.
func (g *registry) load() *snapshot { return g.snap.Load() }

// change replaces the snapshot with one that fn has changed, unless fn returns an error.
func (g *registry) change(fn func(next *snapshot) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.load().next()
	if err := fn(next); err != nil {
		return err
	}
	g.snap.Store(next)
	return nil
}

// wrap adds middleware around the mux. The next request calls the middleware, which may use
// this mux.
func (g *registry) wrap(mw []Middleware) error {
	return g.change(func(next *snapshot) error {
		next.use = slices.Concat(next.use, mw)
		next.chain = sync.OnceValue(func() Handler { return wrap(g, next.use) })
		return nil
	})
}

// register registers a handler. [snapshot.add] checks for conflicts with other registrations.
func (m *Mux) register(kind, name string, h Handler) error {
	m.mustBeMade()
	e := &entry{kind: kind, name: name, key: keyOf(kind, name), site: callSite()}
	h, inside := unwrap(h)
	switch {
	case name == "":
		return registrationErrorf("%s at %s: the name is empty", kind, e.site)
	case isNilHandler(h):
		return e.errorf("the handler is nil")
	}
	e.described, e.extension = DescriptionOf(h), extensionOf(h)
	if err := m.describe(e, h); err != nil {
		return err
	}
	if _, describes := h.(Describer); !describes && kind != "method" {
		m.opts.Logger.Warn("mcp: a "+kind+" is not listed, because its handler has no description", "name", name, "registered", e.site,
			"remedy", "use WithDescription, with a nil description if that is intended; if it is middleware around a handler with a description, use Mux.With or Chain")
	}
	if !m.opts.NoLint {
		m.warnDoubts(e, h)
	}
	if err := m.wrapEntry(e, h, inside); err != nil {
		return err
	}
	return m.edit(func(next *snapshot, a *announcement) error {
		a.changes.add(changeOfEntries(kind))
		return next.add(e)
	})
}

// errorf returns an error about the registration that includes its name and site.
func (e *entry) errorf(format string, args ...any) error {
	return registrationErrorf("%s %q at %s: %w", e.kind, e.name, e.site, fmt.Errorf(format, args...))
}

// wrapEntry sets the handler of the entry: h, wrapped first in the middleware inside, which
// was already around h, and then in the middleware of the view. Handlers of tools, prompts
// and resources are called through the entry.
func (m *Mux) wrapEntry(e *entry, h Handler, inside []Middleware) error {
	e.lister = listerOf(h, e.described)
	if known, ok := h.(enumLister); ok {
		e.enums = known.enumValues()
	}
	around := slices.Concat(m.around(), inside)
	e.public = e.lister != nil && len(around) == 0 && alwaysPublic(h)
	e.registered, e.sealer = h, m.sealer
	tool, canMend := h.(mender)
	if e.kind != "method" {
		h = e
	}
	for _, mw := range slices.Backward(around) {
		h = mw(h)
		if _, hides := h.(seam.ListFilter); hides && e.kind != "method" && e.template == nil {
			return e.errorf("the middleware hides it from calls, but lists do not pass the middleware of a single %s; add middleware such as Visible, Allow, Deny and Reshape to the whole mux with Use, or to a mount", e.kind)
		}
	}
	if canMend && m.opts.Lenient {
		h = lenient{h, tool}
	}
	e.handler, e.around = h, around
	return nil
}

// registeringPackages are packages whose functions register handlers for their callers.
var registeringPackages = []string{"mcp.", "mcp/skills.", "mcp/apps.", "mcp/openapi."}

// isCaller reports whether a function is outside the registeringPackages.
func isCaller(function string) bool {
	name, ours := strings.CutPrefix(function, "github.com/go-psi/psi/")
	return !ours || !slices.ContainsFunc(registeringPackages, func(pkg string) bool { return strings.HasPrefix(name, pkg) })
}

// callSite returns the file and line of the innermost call from outside the
// registeringPackages.
func callSite() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if isCaller(f.Function) || !more {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
	}
}

// add adds an entry, unless it conflicts with another one.
func (s *snapshot) add(e *entry) (err error) {
	for _, t := range s.tables(e.kind) {
		if other := t.find(e.key); other != nil {
			return registrationErrorf("%s %q registered at %s is registered at %s already", e.kind, e.name, e.site, other.site)
		}
	}
	t := s.tables(e.kind)[0]
	if e.kind == "resource" {
		if mt := s.mountOf(e.kind, e.key); mt != nil {
			return mt.errReserved(e)
		}
	}
	if e.template != nil {
		t = &s.templates
		if s.bySpecificity, err = ordered(s.bySpecificity, e); err != nil {
			return err
		}
	}
	i, _ := t.search(e.key)
	*t = slices.Insert(*t, i, e)
	return nil
}

// ordered inserts e into list, which is sorted by specificity.
func ordered(list []*entry, e *entry) ([]*entry, error) {
	at := len(list) // index of the first entry that is less specific
	for i, other := range list {
		switch uritemplate.Compare(e.template, other.template) {
		case uritemplate.Equivalent, uritemplate.Overlaps:
			return list, registrationErrorf("resource template %q (%s) conflicts with %q (%s): some URIs match both and neither is more specific",
				e.name, e.site, other.name, other.site)
		case uritemplate.MoreSpecific:
			at = min(at, i)
		}
	}
	return slices.Insert(list, at, e), nil
}

// remove removes the entries of a kind with the given names.
func (m *Mux) remove(kind string, names []string) error {
	m.mustBeMade()
	return m.edit(func(next *snapshot, a *announcement) error {
		for _, t := range next.tables(kind) {
			for _, name := range names {
				i, found := t.search(keyOf(kind, name))
				if !found {
					continue
				}
				if e := (*t)[i]; e.template != nil {
					next.bySpecificity = slices.DeleteFunc(next.bySpecificity, func(other *entry) bool { return other == e })
				}
				*t = slices.Delete(*t, i, i+1)
				a.changes.add(changeOfEntries(kind))
			}
		}
		return nil
	})
}

// walk calls fn for the entries of the mux and, under their outer names, of the muxes mounted in
// it. It returns the first error of fn.
func (g *registry) walk(fn func(e *entry, name string) error) error {
	s := g.load()
	for _, t := range s.all() {
		for _, e := range *t {
			if err := fn(e, e.name); err != nil {
				return err
			}
		}
	}
	for _, mt := range s.mounts {
		if mt.child == nil {
			continue
		}
		if err := mt.child.walk(func(e *entry, name string) error { return fn(e, mt.outer(e.kind, name)) }); err != nil {
			return err
		}
	}
	return nil
}

// ServeMCP is the innermost handler of the mux, inside its middleware.
func (g *registry) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	if serve := builtin(req.Method); serve != nil {
		return serve(g, ctx, req)
	}
	if e := g.load().methods.find(req.Method); e != nil {
		res, err := e.handler.ServeMCP(contextWithRequest(ctx, req), req)
		if _, asks := res.(*InputRequired); asks {
			return nil, Errorf(CodeInternalError, "the handler of %s asks, which only tools, prompts and resources can", req.Method)
		}
		return res, err
	}
	switch req.Method {
	case tasking.MethodGet, tasking.MethodUpdate, tasking.MethodCancel:
		return g.serveTask(ctx, req)
	}
	if req.IsNotification() {
		return nil, nil
	}
	return nil, NewMethodNotFoundError(req.Method)
}

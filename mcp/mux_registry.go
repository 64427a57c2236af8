// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

// registering serializes changes to all muxes of the process. A single lock suffices
// because registering is rare, and is needed because a change to a mounted mux must be
// checked against the muxes in which it is mounted.
var registering sync.Mutex

// A registry is shared by a Mux and its views. The maps are changed under the registering
// lock. Requests use a snapshot, built by the first request after a change.
type registry struct {
	opts     MuxOptions
	info     Implementation
	infoJSON json.RawMessage // sent in results of server/discover

	briefJSON json.RawMessage // sent in all other results, without icons and descriptions to keep them small
	sealer    *sealer
	hub       *hub
	bus       *bus // nil if there are no other replicas
	snap      atomic.Pointer[snapshot]
	chain     atomic.Pointer[func() *stacked]    // the mux wrapped in its middleware; built by the first request after Use
	outermost atomic.Pointer[[]*outerMiddleware] // nil if there are none
	offered   atomic.Uint32                      // everything that clients have been told the mux offers, as an offer

	// The fields below are guarded by registering.
	use                                           []Middleware
	bySpecificity                                 []*entry // templates, more specific ones first; never changed in place
	tools, prompts, resources, templates, methods map[string]*entry
	mounts                                        map[string]*mount
	parents                                       []*mount // the mounts of this mux in other muxes
}

// An entry is one registered handler.
type entry struct {
	kind, name string
	key        string       // the name or, for resources, its normal form
	registered Handler      // the handler that was registered
	handler    Handler      // registered, wrapped in its middleware
	sealer     *sealer      // seals the state of the handler's questions
	site       string       // where it was registered
	around     []Middleware // see stacked
	described  Description
	extension  extension

	tool     *Tool
	headers  []paramHeader
	prompt   *Prompt
	resource *Resource
	listed   *ResourceTemplate
	template *uritemplate.Template
	checking chan struct{} // limits the runs of the handler for subscriptions; see maxSubscribeRuns
	lister   ResourceLister
	public   bool // whether the lister's results may be cached for all callers
	enums    map[string][]string
}

// A snapshot is an immutable copy of the registry, used by requests.
type snapshot struct {
	tools            map[string]*entry
	prompts          map[string]*entry
	resources        map[string]*entry
	methods          map[string]*entry
	templates        []*entry // most specific first
	listers          []*entry // templates that list their resources, by name
	mounts           []*mount // by prefix
	toolList         []*Tool  // the lists are sorted by name or URI
	promptList       []*Prompt
	resourceList     []*Resource
	templateList     []*ResourceTemplate
	extensions       Extensions // used by tools, prompts and resources
	methodExtensions Extensions // used by handlers of methods
}

func (g *registry) init() {
	g.tools, g.prompts, g.methods = map[string]*entry{}, map[string]*entry{}, map[string]*entry{}
	g.resources, g.templates = map[string]*entry{}, map[string]*entry{}
	g.mounts = map[string]*mount{}
	g.wrap()
}

// wrap makes the next request wrap the mux in its middleware. That request holds no lock,
// because middleware may use this or another mux when it is created.
func (g *registry) wrap() {
	use := slices.Clone(g.use)
	chain := sync.OnceValue(func() *stacked { return stack(g, use) })
	g.chain.Store(&chain)
}

// register registers a handler. It validates the registration before the registering lock is
// acquired; [registry.add] checks for conflicts with other registrations.
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
	e.described, e.extension = descriptionOf(h), extensionOf(h)
	if err := m.describe(e, h); err != nil {
		return err
	}
	if _, describes := h.(Describer); !describes && kind != "method" {
		m.opts.Logger.Warn("mcp: a "+kind+" is not listed, because its handler has no description", "name", name, "registered", e.site,
			"remedy", "use Describe, with a nil description if that is intended; if it is middleware around a handler with a description, use Mux.With, Chain or NewMiddleware")
	}
	if err := m.wrapEntry(e, h, inside); err != nil {
		return err
	}
	return m.edit(m.add(e))
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
	e.public = e.lister != nil && len(around) == 0 && alwaysPublic(e.lister)
	e.registered, e.sealer = h, m.sealer
	tool, canMend := h.(mender)
	if e.kind != "method" {
		h = e
	}
	for i, mw := range slices.Backward(around) {
		s := stack(h, []Middleware{mw})
		h, around[i] = s.Handler, s.around[0]
		if _, hides := h.(seam.ListFilter); hides && e.kind != "method" && e.template == nil {
			return e.errorf("the middleware hides it from calls, but lists do not pass the middleware of a single %s; add middleware such as Visible, Allow and Deny to the whole mux with Use, or to a mount", e.kind)
		}
	}
	if canMend && m.opts.Lenient {
		h = lenient{h, tool}
	}
	e.handler, e.around = h, around
	return nil
}

// registeringPackages are packages whose functions register handlers for their callers.
var registeringPackages = []string{"mcp.", "mcp/skills.", "mcp/apps."}

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

// add returns the edit that adds an entry.
func (g *registry) add(e *entry) edit {
	return func(a *announcement) (undo func(), err error) {
		if err := g.checkFree(e); err != nil {
			return nil, err
		}
		table, order := g.table(e), g.bySpecificity
		if e.template != nil {
			if g.bySpecificity, err = ordered(order, e); err != nil {
				return nil, err
			}
		}
		table[e.key] = e
		a.changes.add(changeOfEntries(e.kind))
		return func() {
			delete(table, e.key)
			g.bySpecificity = order
		}, nil
	}
}

// ordered returns a copy of list, which is sorted by specificity, with e inserted.
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
	return slices.Insert(slices.Clone(list), at, e), nil
}

// without returns a copy of list without e, or list if e is not in it.
func without(list []*entry, e *entry) []*entry {
	i := slices.Index(list, e)
	if i < 0 {
		return list
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

// checkFree returns an error if the name of e is already registered in this mux, in a mux
// mounted in it or, with the prefix of the mount, in a mux above.
func (g *registry) checkFree(e *entry) error {
	for _, m := range g.mounts {
		if err := m.checkNotIn(e); err != nil {
			return err
		}
	}
	if other := g.find(e.kind, e.key, nil); other != nil {
		return registrationErrorf("%s %q registered at %s is registered at %s already", e.kind, e.name, e.site, other.site)
	}
	return g.checkFreeAbove(e.key, e)
}

// checkFreeAbove returns an error if an entry that is called name in this mux conflicts with
// another one in a mux above.
func (g *registry) checkFreeAbove(name string, e *entry) error {
	for _, up := range g.parents {
		if full, ok := up.outerName(e.kind, name); ok {
			if err := up.parent.checkFreeFor(full, e, up); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *registry) checkFreeFor(name string, e *entry, by *mount) error {
	if other := g.find(e.kind, name, by); other != nil {
		return registrationErrorf("%s %q registered at %s becomes %q by the mount at %s, which is registered at %s already",
			e.kind, e.name, e.site, name, by.site, other.site)
	}
	return g.checkFreeAbove(name, e)
}

// find returns the entry with a key in this mux and the muxes mounted in it, except one, or
// nil.
func (g *registry) find(kind, key string, except *mount) *entry {
	for _, table := range g.tables(kind) {
		if e := table[key]; e != nil {
			return e
		}
	}
	for _, m := range g.mounts {
		inner, ok := m.innerName(kind, key)
		if child, isMux := m.handler.(*Mux); ok && isMux && m != except {
			if e := child.find(kind, inner, nil); e != nil {
				return e
			}
		}
	}
	return nil
}

// tables returns the tables that hold the entries of a kind.
func (g *registry) tables(kind string) []map[string]*entry {
	switch kind {
	case "tool":
		return []map[string]*entry{g.tools}
	case "prompt":
		return []map[string]*entry{g.prompts}
	case "resource":
		return []map[string]*entry{g.resources, g.templates}
	default:
		return []map[string]*entry{g.methods}
	}
}

// table returns the table that holds an entry.
func (g *registry) table(e *entry) map[string]*entry {
	if e.template != nil {
		return g.templates
	}
	return g.tables(e.kind)[0]
}

// remove removes the entries of a kind with the given names.
func (m *Mux) remove(kind string, names []string) error {
	m.mustBeMade()
	return m.edit(func(a *announcement) (undo func(), err error) {
		var removed []*entry
		order := m.bySpecificity
		for _, table := range m.tables(kind) {
			for _, name := range names {
				key := keyOf(kind, name)
				if e := table[key]; e != nil {
					delete(table, key)
					m.bySpecificity = without(m.bySpecificity, e)
					removed = append(removed, e)
					a.changes.add(changeOfEntries(kind))
				}
			}
		}
		return func() {
			for _, e := range removed {
				m.table(e)[e.key] = e
			}
			m.bySpecificity = order
		}, nil
	})
}

func (g *registry) load() *snapshot {
	if s := g.snap.Load(); s != nil {
		return s
	}
	registering.Lock()
	defer registering.Unlock()
	s := g.snapshot()
	g.snap.Store(s)
	return s
}

func (g *registry) snapshot() *snapshot {
	s := &snapshot{
		tools: maps.Clone(g.tools), prompts: maps.Clone(g.prompts),
		resources: maps.Clone(g.resources), methods: maps.Clone(g.methods),
		templates: g.bySpecificity,
		mounts:    slices.SortedFunc(maps.Values(g.mounts), func(a, b *mount) int { return cmp.Compare(a.prefix, b.prefix) }),
	}
	for _, e := range byName(g.tools) {
		s.toolList = appendDescribed(s.toolList, e.tool)
	}
	for _, e := range byName(g.prompts) {
		s.promptList = appendDescribed(s.promptList, e.prompt)
	}
	for _, e := range byName(g.resources) {
		s.resourceList = appendDescribed(s.resourceList, e.resource)
	}
	for _, e := range byName(g.templates) {
		s.templateList = appendDescribed(s.templateList, e.listed)
		if e.lister != nil {
			s.listers = append(s.listers, e)
		}
	}
	for _, entries := range []map[string]*entry{g.tools, g.prompts, g.resources, g.templates} {
		s.extensions.declareAll(entries)
	}
	s.methodExtensions.declareAll(g.methods)
	return s
}

func byName(entries map[string]*entry) []*entry {
	return slices.SortedFunc(maps.Values(entries), func(a, b *entry) int { return cmp.Compare(a.name, b.name) })
}

func appendDescribed[D any](list []*D, d *D) []*D {
	if d == nil {
		return list
	}
	return append(list, d)
}

func (g *registry) walk(fn func(method, name string, h Handler) error) error {
	s := g.load()
	kinds := []struct {
		method  string
		entries []*entry
	}{
		{MethodCallTool, byName(s.tools)}, {MethodGetPrompt, byName(s.prompts)},
		{MethodReadResource, byName(s.resources)}, {MethodReadResource, s.templates},
	}
	for _, k := range kinds {
		for _, e := range k.entries {
			if err := fn(k.method, e.name, e.handler); err != nil {
				return err
			}
		}
	}
	for _, e := range byName(s.methods) {
		if err := fn(e.name, "", e.handler); err != nil {
			return err
		}
	}
	for _, m := range s.mounts {
		child, ok := m.handler.(*Mux)
		if !ok {
			continue
		}
		err := child.walk(func(method, name string, h Handler) error { return fn(method, m.outer(method, name), h) })
		if err != nil {
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
	if e := g.load().methods[req.Method]; e != nil {
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-psi/psi/internal/ascii"
)

// mount is a Handler that serves the names under a prefix of another mux.
type mount struct {
	prefix  string
	handler Handler // as it was given: a *Mux, or anything else
	serve   Handler // handler, wrapped in the middleware of the view
	site    string
	parent  *registry
}

// isMountPrefix reports whether every model provider accepts a prefix in the name of
// a tool.
func isMountPrefix(prefix string) bool { return ascii.IsName(prefix, 64, "_-") }

// Mount serves another mux, or any Handler that answers as a server does, such as
// a connection to one, under a literal prefix, separator included: with the
// prefix "github_", its tool "search" is the tool "github_search". Prompts are
// named alike; the URI "notes://a" becomes "mount:github_:notes://a", and so do
// the URIs of what its tools and prompts return, except those that the client
// fetches from the web itself. What is registered on the mux itself goes before
// mounts, and a longer prefix before a shorter one. Custom methods are not
// mounted.
//
// The middleware of the mux is wrapped around that of what is mounted, and list
// changes and resource updates go up.
func (m *Mux) Mount(prefix string, h Handler) {
	site := callSite()
	if h == nil {
		panic(fmt.Sprintf("mcp: mount %q at %s: the handler is nil", prefix, site))
	}
	if !isMountPrefix(prefix) {
		panic(fmt.Sprintf("mcp: mount %q at %s: a prefix must have 1 to 64 letters, digits, _ and -, as the names of tools must", prefix, site))
	}
	mt := &mount{prefix: prefix, handler: h, serve: Chain(h, m.around()...), site: site, parent: m.registry}
	m.update(func() {
		if other := m.mounts[prefix]; other != nil {
			panic(fmt.Sprintf("mcp: mount %q at %s: something is mounted there at %s already", prefix, site, other.site))
		}
		if child, ok := h.(*Mux); ok {
			mt.adopt(child.registry)
		}
		m.mounts[prefix] = mt
	})
	m.hub.remount()
	m.announceAll()
}

// Unmount takes away what is mounted under prefix; it does nothing if there is
// nothing.
func (m *Mux) Unmount(prefix string) {
	m.update(func() {
		mt := m.mounts[prefix]
		if mt == nil {
			return
		}
		delete(m.mounts, prefix)
		if child, ok := mt.handler.(*Mux); ok {
			child.disown(mt)
		}
	})
	m.hub.remount()
	m.announceAll()
}

func (g *registry) announceAll() {
	g.hub.changed(toolsChanged)
	g.hub.changed(promptsChanged)
	g.hub.changed(resourcesChanged)
}

// adopt checks every name of the child against those above, and links it to its
// parent for names to come.
func (mt *mount) adopt(child *registry) {
	if child.contains(mt.parent) {
		panic(fmt.Sprintf("mcp: mount %q at %s: the mux would contain itself", mt.prefix, mt.site))
	}
	child.eachEntry(func(kind, name string, e *entry) {
		if full, ok := mt.outerName(kind, name); ok {
			named := *e
			named.kind = kind
			mt.parent.mustBeFreeFor(full, &named, mt)
		}
	})
	child.parents = append(child.parents, mt)
}

func (g *registry) disown(mt *mount) {
	for i, p := range g.parents {
		if p == mt {
			g.parents = append(g.parents[:i:i], g.parents[i+1:]...)
			return
		}
	}
}

func (g *registry) contains(other *registry) bool {
	if g == other {
		return true
	}
	for _, m := range g.mounts {
		if child, ok := m.handler.(*Mux); ok && child.contains(other) {
			return true
		}
	}
	return false
}

// eachEntry calls fn for all names of the mux and of those mounted in it.
func (g *registry) eachEntry(fn func(kind, name string, e *entry)) {
	for _, entries := range []map[string]*entry{g.tools, g.prompts, g.resources, g.templates} {
		for name, e := range entries {
			fn(e.kind, name, e)
		}
	}
	for _, m := range g.mounts {
		if child, ok := m.handler.(*Mux); ok {
			child.eachEntry(func(kind, name string, e *entry) {
				if full, ok := m.outerName(kind, name); ok {
					fn(kind, full, e)
				}
			})
		}
	}
}

// uriPrefix marks the URIs of a mount: an opaque URI that has the inner one in it
// byte for byte, so that taking it off is exact.
func (mt *mount) uriPrefix() string { return "mount:" + mt.prefix + ":" }

func (mt *mount) prefixFor(kind string) string {
	if kind == "resource" {
		return mt.uriPrefix()
	}
	return mt.prefix
}

// outerName is the name outside of the mount; methods have none.
func (mt *mount) outerName(kind, name string) (string, bool) {
	if kind == "method" {
		return "", false
	}
	return mt.prefixFor(kind) + name, true
}

// innerName is the name inside of the mount, if name belongs there.
func (mt *mount) innerName(kind, name string) (string, bool) {
	if kind == "method" {
		return "", false
	}
	return strings.CutPrefix(name, mt.prefixFor(kind))
}

// outer is outerName by method.
func (mt *mount) outer(method, name string) string {
	switch method {
	case MethodCallTool, MethodGetPrompt:
		return mt.prefix + name
	case MethodReadResource:
		return mt.uriPrefix() + name
	}
	return name
}

// mountOf is the mount with the longest prefix of name, or nil.
func (s *snapshot) mountOf(kind, name string) *mount {
	var best *mount
	for _, m := range s.mounts {
		if _, ok := m.innerName(kind, name); ok && (best == nil || len(m.prefix) > len(best.prefix)) {
			best = m
		}
	}
	return best
}

// serveNamed passes a request on under its inner name.
func (mt *mount) serveNamed(ctx context.Context, req *Request, kind string) (Result, error) {
	name, _ := mt.innerName(kind, req.Name())
	inner := req.withName(name)
	inner.mounts += mt.prefix + "/"
	res, err := mt.serve.ServeMCP(contextWithRequest(ctx, inner), inner)
	if kind == "resource" && isResourceNotFound(err) {
		return nil, ResourceNotFound(req.Name())
	}
	if err != nil {
		return nil, err
	}
	return mt.renameResult(res), nil
}

// addCapabilities adds what the mounted server offers. One that cannot be asked
// is taken to offer everything: its errors will tell.
func (mt *mount) addCapabilities(ctx context.Context, req *Request, caps *ServerCapabilities) {
	inner := req.Clone()
	res, err := mt.serve.ServeMCP(contextWithRequest(ctx, inner), inner)
	if r, ok := res.(*DiscoverResult); ok && err == nil {
		caps.merge(r.Capabilities)
		return
	}
	all := &ListCapability{ListChanged: true}
	caps.merge(&ServerCapabilities{Tools: all, Prompts: all, Resources: &ResourcesCapability{Subscribe: true, ListChanged: true}})
}

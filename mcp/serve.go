// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"maps"
	"slices"
)

// builtin are the methods that a mux serves by itself.
var builtin map[string]func(*registry, context.Context, *Request) (Result, error)

func init() { //nolint:gochecknoinits // breaks the cycle of a table whose functions use it
	builtin = map[string]func(*registry, context.Context, *Request) (Result, error){
		MethodDiscover:              (*registry).discover,
		MethodListTools:             (*registry).listTools,
		MethodCallTool:              (*registry).callTool,
		MethodListPrompts:           (*registry).listPrompts,
		MethodGetPrompt:             (*registry).getPrompt,
		MethodListResources:         (*registry).listResources,
		MethodListResourceTemplates: (*registry).listTemplates,
		MethodReadResource:          (*registry).readResource,
		MethodComplete:              (*registry).complete,
		MethodListen:                (*registry).listen,
	}
}

func (g *registry) callTool(ctx context.Context, req *Request) (Result, error) {
	s := g.load()
	if e := s.tools[req.Name()]; e != nil {
		return e.handler.ServeMCP(ctx, req)
	}
	if m := s.mountOf("tool", req.Name()); m != nil {
		return m.serveNamed(ctx, req, "tool")
	}
	return nil, unknown(s.capabilities.Tools != nil, req, "tool")
}

func (g *registry) getPrompt(ctx context.Context, req *Request) (Result, error) {
	s := g.load()
	if e := s.prompts[req.Name()]; e != nil {
		return e.handler.ServeMCP(ctx, req)
	}
	if m := s.mountOf("prompt", req.Name()); m != nil {
		return m.serveNamed(ctx, req, "prompt")
	}
	return nil, unknown(s.capabilities.Prompts != nil, req, "prompt")
}

func (g *registry) readResource(ctx context.Context, req *Request) (Result, error) {
	s := g.load()
	if e, path := s.resource(req.Name()); e != nil {
		if e.template != nil {
			req = req.Clone()
			req.path = path
			ctx = contextWithRequest(ctx, req)
		}
		return e.handler.ServeMCP(ctx, req)
	}
	if m := s.mountOf("resource", req.Name()); m != nil {
		return m.serveNamed(ctx, req, "resource")
	}
	if s.capabilities.Resources != nil && req.Name() != "" {
		return nil, ResourceNotFound(req.Name())
	}
	return nil, unknown(s.capabilities.Resources != nil, req, "resource")
}

// unknown is the error for a name that is not registered. A method of a kind of
// thing that the server does not offer does not exist.
func unknown(offered bool, req *Request, kind string) error {
	switch {
	case !offered:
		return MethodNotFound(req.Method)
	case req.subject().to == 0 && kind == "resource":
		return Errorf(CodeInvalidParams, "params.uri is missing")
	case req.subject().to == 0:
		return Errorf(CodeInvalidParams, "params.name is missing")
	}
	return Unknown(kind, req.Name())
}

func (g *registry) discover(ctx context.Context, req *Request) (Result, error) {
	s := g.load()
	caps := *s.capabilities
	s.addMounted(ctx, req.Clone, &caps)
	return &DiscoverResult{
		Cacheable:         g.opts.ListCache,
		SupportedVersions: ModernVersions(),
		Capabilities:      &caps,
		Instructions:      g.opts.Instructions,
	}, nil
}

// ownCapabilities are declared by what is, or once was, registered: a list that
// has run empty is still a list.
func (g *registry) ownCapabilities() *ServerCapabilities {
	caps := &ServerCapabilities{}
	if c := g.opts.Capabilities; c != nil {
		*caps = *c
		caps.Extensions = maps.Clone(c.Extensions)
	}
	if g.everTools && caps.Tools == nil {
		caps.Tools = &ListCapability{ListChanged: true}
	}
	if g.everPrompts && caps.Prompts == nil {
		caps.Prompts = &ListCapability{ListChanged: true}
	}
	if g.everResources && caps.Resources == nil {
		caps.Resources = &ResourcesCapability{Subscribe: true, ListChanged: true}
	}
	if caps.Logging == nil {
		caps.Logging = &struct{}{}
	}
	if g.everPrompts || len(g.templates) > 0 {
		caps.Completions = &struct{}{}
	}
	return caps
}

// merge adds what another server offers.
func (c *ServerCapabilities) merge(other *ServerCapabilities) {
	if other == nil {
		return
	}
	c.Tools = mergeList(c.Tools, other.Tools)
	c.Prompts = mergeList(c.Prompts, other.Prompts)
	if r := other.Resources; r != nil {
		merged := *r
		if c.Resources != nil {
			merged.Subscribe = merged.Subscribe || c.Resources.Subscribe
			merged.ListChanged = merged.ListChanged || c.Resources.ListChanged
		}
		c.Resources = &merged
	}
	if c.Completions == nil {
		c.Completions = other.Completions
	}
}

func mergeList(a, b *ListCapability) *ListCapability {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &ListCapability{ListChanged: a.ListChanged || b.ListChanged}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

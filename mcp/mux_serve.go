// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"maps"
	"slices"

	"github.com/go-psi/psi/internal/tasking"
)

// builtin returns the function that serves a method of the specification, or nil for other
// methods.
func builtin(method string) func(*registry, context.Context, *Request) (Result, error) {
	switch method {
	case MethodDiscover:
		return (*registry).discover
	case MethodListTools:
		return (*registry).listTools
	case MethodCallTool:
		return (*registry).callTool
	case MethodListPrompts:
		return (*registry).listPrompts
	case MethodGetPrompt:
		return (*registry).getPrompt
	case MethodListResources:
		return (*registry).listResources
	case MethodListResourceTemplates:
		return (*registry).listTemplates
	case MethodReadResource:
		return (*registry).readResource
	case MethodComplete:
		return (*registry).complete
	case MethodListen:
		return (*registry).listen
	}
	return nil
}

func (g *registry) callTool(ctx context.Context, req *Request) (Result, error) {
	s := g.load()
	if e := s.tools.find(req.Name()); e != nil {
		req.setRouted()
		return e.handler.ServeMCP(ctx, req)
	}
	if m := s.mountOf("tool", req.Name()); m != nil {
		return m.serveNamed(ctx, req, "tool")
	}
	return nil, g.unknown(offerTools, req, "tool")
}

func (g *registry) getPrompt(ctx context.Context, req *Request) (Result, error) {
	s := g.load()
	if e := s.prompts.find(req.Name()); e != nil {
		req.setRouted()
		return e.handler.ServeMCP(ctx, req)
	}
	if m := s.mountOf("prompt", req.Name()); m != nil {
		return m.serveNamed(ctx, req, "prompt")
	}
	return nil, g.unknown(offerPrompts, req, "prompt")
}

func (g *registry) readResource(ctx context.Context, req *Request) (Result, error) {
	s := g.load()
	if e, path := s.resource(req.Name()); e != nil {
		req.setRouted()
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
	if req.Name() != "" && g.offers()&offerResources != 0 {
		return nil, NewResourceNotFoundError(req.Name())
	}
	return nil, g.unknown(offerResources, req, "resource")
}

// unknown returns the error for a name that is not registered. If the server does not offer
// that kind of item, the error is method not found.
func (g *registry) unknown(wanted offer, req *Request, kind string) error {
	switch {
	case g.offers()&wanted == 0:
		return NewMethodNotFoundError(req.Method)
	case req.subject().to == 0 && kind == "resource":
		return Errorf(CodeInvalidParams, "params.uri is missing")
	case req.subject().to == 0:
		return Errorf(CodeInvalidParams, "params.name is missing")
	}
	return NewUnknownNameError(kind, req.Name())
}

func (g *registry) discover(ctx context.Context, req *Request) (Result, error) {
	caps := g.capabilities()
	if g.hasMountedTasks(ctx, req) {
		caps.declare(tasking.Extension)
	}
	return &DiscoverResult{
		Cacheable:         g.opts.ListCache,
		SupportedVersions: ModernVersions(),
		Capabilities:      caps,
		Instructions:      g.opts.Instructions,
	}, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ServeMCP is the innermost handler of a tool, prompt or resource, inside its middleware.
// In addition to tools/call, prompts/get and resources/read, it serves completion, listing
// the resources of a template, and subscribing, so that the middleware applies to these as
// well.
func (e *entry) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	if e.kind == "tool" {
		if err := checkParamHeaders(e.headers, req); err != nil {
			return nil, err
		}
		return e.serveAsking(ctx, req)
	}
	switch req.Method {
	case MethodComplete:
		return e.complete(ctx, req)
	case MethodListResources:
		return e.list(ctx, req)
	case MethodSubscribe:
		return e.subscribe(ctx, req)
	}
	return e.serveAsking(ctx, req)
}

// list returns a page of the resources that the template matches.
func (e *entry) list(ctx context.Context, req *Request) (Result, error) {
	var p ListParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if e.lister == nil {
		return nil, NewMethodNotFoundError(req.Method)
	}
	r, err := e.lister.ListResources(ctx, e.name, p.Cursor)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errNoOutcome(req.Method)
	}
	return r, nil
}

// subscribe decides whether the sender of req may subscribe to the resource.
func (e *entry) subscribe(ctx context.Context, req *Request) (Result, error) {
	if e.resource == nil || e.resource.Subscribe == nil {
		return nil, NewMethodNotFoundError(req.Method)
	}
	if err := e.resource.Subscribe(ctx, req.Name()); err != nil {
		return nil, err
	}
	return &EmptyResult{}, nil
}

// An offer is a set of features that a mux offers to its callers.
type offer uint32

const (
	offerTools offer = 1 << iota
	offerPrompts
	offerResources
	offerCompletions

	offerEverything = offerTools | offerPrompts | offerResources | offerCompletions
)

// offerOf returns what the entries of a mux offer.
func offerOf(s *snapshot) (o offer) {
	if len(s.tools) > 0 {
		o |= offerTools
	}
	if len(s.prompts) > 0 {
		o |= offerPrompts | offerCompletions
	}
	if len(s.resources)+len(s.templates) > 0 {
		o |= offerResources
	}
	if len(s.templates) > 0 {
		o |= offerCompletions
	}
	return o
}

// offerIn returns the offer of declared capabilities.
func offerIn(c *ServerCapabilities) (o offer) {
	for kind, declared := range map[offer]bool{
		offerTools: c.Tools != nil, offerPrompts: c.Prompts != nil,
		offerResources: c.Resources != nil, offerCompletions: c.Completions != nil,
	} {
		if declared {
			o |= kind
		}
	}
	return o
}

// offers returns what the mux and the muxes mounted in it offer. A mux that is empty when it
// is served, or has handlers mounted that are not a Mux, such as connections, offers
// everything, since anything may be added later. Clients remember what the server declared,
// so an offer is never withdrawn.
func (g *registry) offers() offer {
	s := g.load()
	o := offerOf(s) | offer(g.offered.Load())
	for _, m := range s.mounts {
		if m.child != nil {
			o |= m.child.offers()
		} else {
			o = offerEverything
		}
	}
	if o == 0 {
		o = offerEverything
	}
	g.offered.Or(uint32(o))
	return o
}

// capabilities returns the capabilities set in the options, and those implied by what the
// mux offers.
func (g *registry) capabilities() *ServerCapabilities {
	caps := *orEmpty(g.opts.Capabilities)
	caps.Extensions = maps.Clone(caps.Extensions)
	for _, extensions := range []Extensions{g.load().methodExtensions(), g.extensions()} {
		for id, settings := range extensions {
			caps.Extensions.declare(id, settings)
		}
	}
	o := g.offers()
	if caps.Tools == nil && o&offerTools != 0 {
		caps.Tools = &ListCapability{ListChanged: true}
	}
	if caps.Prompts == nil && o&offerPrompts != 0 {
		caps.Prompts = &ListCapability{ListChanged: true}
	}
	if caps.Resources == nil && o&offerResources != 0 {
		caps.Resources = &ResourcesCapability{Subscribe: true, ListChanged: true}
	}
	if o&offerCompletions != 0 {
		caps.Completions = &struct{}{}
	}
	if caps.Logging == nil {
		caps.Logging = &struct{}{}
	}
	return &caps
}

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
	return nil, g.unknown(featureTools, req, "tool")
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
	return nil, g.unknown(featurePrompts, req, "prompt")
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
	if req.Name() != "" && g.features()&featureResources != 0 {
		return nil, NewResourceNotFoundError(req.Name())
	}
	return nil, g.unknown(featureResources, req, "resource")
}

// unknown returns the error for a name that is not registered. If the server does not offer
// that kind of item, the error is method not found.
func (g *registry) unknown(wanted features, req *Request, kind string) error {
	switch {
	case g.features()&wanted == 0:
		return NewMethodNotFoundError(req.Method)
	case req.subject().to == 0 && kind == "resource":
		return Errorf(CodeInvalidParams, "params.uri is missing")
	case req.subject().to == 0:
		return Errorf(CodeInvalidParams, "params.name is missing")
	}
	return NewUnknownNameError(Kind(kind), req.Name())
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
	r, err := e.lister(ctx, e.name, &p)
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

// features is a set of kinds of items and operations.
type features uint32

const (
	featureTools features = 1 << iota
	featurePrompts
	featureResources
	featureCompletions

	allFeatures = featureTools | featurePrompts | featureResources | featureCompletions
)

// featuresOf returns the features for which a snapshot has entries.
func featuresOf(s *snapshot) (f features) {
	if len(s.tools) > 0 {
		f |= featureTools
	}
	if len(s.prompts) > 0 {
		f |= featurePrompts | featureCompletions
	}
	if len(s.resources)+len(s.templates) > 0 {
		f |= featureResources
	}
	if len(s.templates) > 0 {
		f |= featureCompletions
	}
	return f
}

// declaredFeatures returns the features that capabilities declare.
func declaredFeatures(c *ServerCapabilities) (f features) {
	for kind, declared := range map[features]bool{
		featureTools: c.Tools != nil, featurePrompts: c.Prompts != nil,
		featureResources: c.Resources != nil, featureCompletions: c.Completions != nil,
	} {
		if declared {
			f |= kind
		}
	}
	return f
}

// features returns the features of the mux and the muxes mounted in it: those of what is
// registered. They only grow, because clients remember what was declared. A mux that is
// empty when it is served, or has handlers mounted that are not a Mux, such as connections,
// has all, since anything may be added later. Declaring all always was rejected, because
// some hosts give their model more tools as soon as a server has resources; asking the
// mounts, because which of them are up changes from one moment to the next.
func (g *registry) features() features {
	s := g.load()
	f := featuresOf(s) | features(g.declared.Load())
	for _, m := range s.mounts {
		if m.child != nil {
			f |= m.child.features()
		} else {
			f = allFeatures
		}
	}
	if f == 0 {
		f = allFeatures
	}
	g.declared.Or(uint32(f))
	return f
}

// capabilities returns the capabilities set in the options, and those implied by the
// features of the mux.
func (g *registry) capabilities() *ServerCapabilities {
	caps := *orEmpty(g.opts.Capabilities)
	caps.Extensions = maps.Clone(caps.Extensions)
	for _, extensions := range []Extensions{g.load().methodExtensions(), g.extensions()} {
		for id, settings := range extensions {
			caps.Extensions.declare(id, settings)
		}
	}
	f := g.features()
	if caps.Tools == nil && f&featureTools != 0 {
		caps.Tools = &ListCapability{ListChanged: true}
	}
	if caps.Prompts == nil && f&featurePrompts != 0 {
		caps.Prompts = &ListCapability{ListChanged: true}
	}
	if caps.Resources == nil && f&featureResources != 0 {
		caps.Resources = &ResourcesCapability{Subscribe: true, ListChanged: true}
	}
	if f&featureCompletions != 0 {
		caps.Completions = &struct{}{}
	}
	if caps.Logging == nil {
		caps.Logging = &struct{}{}
	}
	return &caps
}

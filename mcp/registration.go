// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "context"

// registration is the innermost handler of a prompt or resource. Besides prompts/get and
// resources/read it serves completion, the list of resources that a template matches, and
// subscribing, so that the middleware around the handler applies to these as well.
type registration struct {
	Handler
	entry *entry
}

func (h registration) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	switch req.Method {
	case MethodComplete:
		return h.entry.complete(ctx, req)
	case MethodListResources:
		return h.entry.list(ctx, req)
	case MethodSubscribe:
		return h.entry.subscribe(ctx, req)
	}
	return h.Handler.ServeMCP(ctx, req)
}

// list returns a page of the resources that the template matches.
func (e *entry) list(ctx context.Context, req *Request) (Result, error) {
	var p ListParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	r, err := e.lister.ListResources(ctx, e.name, p.Cursor)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, neither(req.Method)
	}
	return r, nil
}

// subscribe decides whether the sender of req may subscribe to the resource.
func (e *entry) subscribe(ctx context.Context, req *Request) (Result, error) {
	if err := e.resource.Subscribe(ctx, req.Name()); err != nil {
		return nil, err
	}
	return &EmptyResult{}, nil
}

// maySubscribe reports whether the sender of a subscriptions/listen request may receive
// updates of a resource. A mounted server decides about its own resources.
func (g *registry) maySubscribe(ctx context.Context, req *Request, uri string) bool {
	s := g.load()
	e, path := s.resource(uri)
	if e == nil {
		return s.mountOf("resource", uri) != nil
	}
	method := MethodReadResource
	if e.resource != nil && e.resource.Subscribe != nil {
		method = MethodSubscribe
	}
	inner := req.derive(method, mustMarshal(&ReadResourceParams{URI: uri}))
	inner.ID, inner.path = req.ID, path
	res, err := serve(contextWithRequest(ctx, inner), e.handler, inner, nil, g.opts.Logger)
	_, asks := res.(*InputRequired) // a subscription cannot ask the user
	return err == nil && !asks
}

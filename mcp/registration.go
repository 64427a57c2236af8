// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "context"

// registration is the innermost handler of a prompt or resource. Middleware around it
// wraps everything that it offers: besides being got or read, completing its arguments,
// listing what its template matches, and subscribing to it.
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

// list lists a page of what the template matches.
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

func (e *entry) subscribe(ctx context.Context, req *Request) (Result, error) {
	if err := e.resource.Subscribe(ctx, req.Name()); err != nil {
		return nil, err
	}
	return &EmptyResult{}, nil
}

// maySubscribe reports whether the sender of req, which listens, may be told of updates
// of a resource. What a mount serves, the mounted server decides.
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
	res, err := Serve(contextWithRequest(ctx, inner), e.handler, inner, nil, g.opts.Logger)
	_, asks := res.(*InputRequired) // and a listener cannot be asked
	return err == nil && !asks
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"slices"

	"github.com/go-psi/psi/mcp"
)

// A Kind is a kind of thing that can be visible or not.
type Kind string

// The kinds.
const (
	Tool     Kind = "tool"
	Prompt   Kind = "prompt"
	Resource Kind = "resource" // named by its URI, or, in lists and completion, by its template
)

// Visible hides what visible says no to from a caller: from the lists, and from
// those who know or guess its name. Whoever calls, gets, reads, completes or
// subscribes to what is hidden learns as much as if it did not exist. The lists are
// private, since they depend on the caller, who is found by [mcp.PrincipalFrom].
//
// It is meant for a whole mux. The names are those that the caller sees, prefixes
// of mounts included. The function is called for every element of a list, and for many
// requests at once. Visible panics if it is nil.
func Visible(visible func(ctx context.Context, kind Kind, name string) bool) mcp.Middleware {
	if visible == nil {
		panic("middleware.Visible: the function must not be nil")
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			v := viewer{ctx, visible}
			req, err := v.check(req)
			if err != nil {
				return nil, err
			}
			res, err := next.ServeMCP(ctx, req)
			if err != nil {
				return nil, err
			}
			return v.filter(res), nil
		})
	}
}

// viewer is one caller's view, for one request.
type viewer struct {
	ctx     context.Context
	visible func(context.Context, Kind, string) bool
}

// check refuses a request for what is hidden, as if it were not there.
func (v viewer) check(req *mcp.Request) (*mcp.Request, error) {
	switch req.Method {
	case mcp.MethodCallTool:
		return v.named(req, Tool)
	case mcp.MethodGetPrompt:
		return v.named(req, Prompt)
	case mcp.MethodReadResource:
		if !v.visible(v.ctx, Resource, req.Name()) {
			return nil, mcp.ResourceNotFound(req.Name())
		}
	case mcp.MethodComplete:
		return v.completing(req)
	case mcp.MethodListen:
		return v.listening(req)
	}
	return req, nil
}

func (v viewer) named(req *mcp.Request, kind Kind) (*mcp.Request, error) {
	if !v.visible(v.ctx, kind, req.Name()) {
		return nil, mcp.Unknown(string(kind), req.Name())
	}
	return req, nil
}

func (v viewer) completing(req *mcp.Request) (*mcp.Request, error) {
	var p mcp.CompleteParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	kind, name := Prompt, p.Ref.Name
	if p.Ref.Type == "ref/resource" {
		kind, name = Resource, p.Ref.URI
	}
	if !v.visible(v.ctx, kind, name) {
		return nil, mcp.Unknown(string(kind), name)
	}
	return req, nil
}

// listening takes what is hidden out of a subscription.
func (v viewer) listening(req *mcp.Request) (*mcp.Request, error) {
	var p mcp.ListenParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	uris := slices.DeleteFunc(p.Notifications.ResourceSubscriptions, func(uri string) bool { return !v.visible(v.ctx, Resource, uri) })
	p.Notifications.ResourceSubscriptions = uris
	return req.WithParams(&p)
}

// filter takes what is hidden out of a list, in a copy.
func (v viewer) filter(res mcp.Result) mcp.Result {
	switch r := res.(type) {
	case *mcp.ListToolsResult:
		c := *r
		c.Tools = keep(r.Tools, func(t *mcp.Tool) bool { return v.visible(v.ctx, Tool, t.Name) })
		c.CacheScope = mcp.CachePrivate
		return &c
	case *mcp.ListPromptsResult:
		c := *r
		c.Prompts = keep(r.Prompts, func(p *mcp.Prompt) bool { return v.visible(v.ctx, Prompt, p.Name) })
		c.CacheScope = mcp.CachePrivate
		return &c
	case *mcp.ListResourcesResult:
		c := *r
		c.Resources = keep(r.Resources, func(x *mcp.Resource) bool { return v.visible(v.ctx, Resource, x.URI) })
		c.CacheScope = mcp.CachePrivate
		return &c
	case *mcp.ListResourceTemplatesResult:
		c := *r
		c.ResourceTemplates = keep(r.ResourceTemplates, func(t *mcp.ResourceTemplate) bool { return v.visible(v.ctx, Resource, t.URITemplate) })
		c.CacheScope = mcp.CachePrivate
		return &c
	}
	return res
}

func keep[D any](list []*D, visible func(*D) bool) []*D {
	kept := make([]*D, 0, len(list))
	for _, d := range list {
		if visible(d) {
			kept = append(kept, d)
		}
	}
	return kept
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"context"
	"sync"

	"github.com/go-psi/psi/mcp"
)

// connect connects an in-process client to the handler. Its requests have caller as their
// principal. If quiet is true, they are not recorded. r answers the questions of the handler; it
// may be nil. The returned connection must be closed.
func (p *page) connect(ctx context.Context, caller *mcp.Principal, quiet bool, r *run) (*mcp.Conn, error) {
	h := p.handler
	switch h.(type) {
	case *mcp.Mux, interface{ Use(mw ...mcp.Middleware) }:
	default:
		h = p.recorder.middleware(h)
	}
	opts := &mcp.ClientOptions{Title: "Debug page", Version: mcp.LatestVersion, Logger: p.opts.Logger}
	if r != nil {
		r.answerBy(opts)
	}
	client := mcp.NewClient("psi-debug", "v1", opts)
	return client.Connect(ctx, mcp.InProcess(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if quiet || req.Method == mcp.MethodDiscover {
			ctx = quietly(ctx)
		}
		req = req.Clone()
		req.Principal = caller
		return h.ServeMCP(ctx, req)
	})))
}

// cachedServer caches the last discovery result of the handler.
type cachedServer struct {
	mu   sync.Mutex
	said *mcp.DiscoverResult
}

// describe returns the discovery result of the handler. It is cached, because the handler may be
// remote, and requested again only if again is true.
func (p *page) describe(ctx context.Context, caller *mcp.Principal, again bool) (*mcp.DiscoverResult, error) {
	p.server.mu.Lock()
	said := p.server.said
	p.server.mu.Unlock()
	if said != nil && !again {
		return said, nil
	}
	conn, err := p.connect(ctx, caller, true, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	p.keep(conn.Server())
	return conn.Server(), nil
}

func (p *page) keep(said *mcp.DiscoverResult) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.said = said
}

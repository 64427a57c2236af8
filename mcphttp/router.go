// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/go-psi/psi/mcp"
)

// RouterOptions configure a [Router]. Nil means the zero RouterOptions.
type RouterOptions struct {
	// Options are those of the handlers.
	Options *Options
	// Path is that of streamable HTTP, "/mcp" if empty.
	Path string
	// SSEPath is that of the transport of 2024-11-05, "/sse" if empty.
	SSEPath string
	// HealthPath answers 200 as long as requests are taken, "/healthz" if empty.
	HealthPath string
	// Middleware is wrapped around all endpoints except the one for health, the
	// first outermost.
	Middleware []func(http.Handler) http.Handler
}

// A Router is a chi router with the endpoints that belong together: streamable
// HTTP, the transport before it, and one that tells whether the server is well.
// More can be routed on it.
type Router struct {
	chi.Router
	// MCP and SSE are the handlers behind Path and SSEPath.
	MCP *Handler
	SSE *SSEHandler
}

// NewRouter makes a Router; opts may be nil.
func NewRouter(h mcp.Handler, opts *RouterOptions) *Router {
	var o RouterOptions
	if opts != nil {
		o = *opts
	}
	r := &Router{Router: chi.NewRouter(), MCP: NewHandler(h, o.Options), SSE: NewSSEHandler(h, o.Options)}
	r.Get(cmp.Or(o.HealthPath, "/healthz"), r.health)
	r.Group(func(g chi.Router) {
		g.Use(o.Middleware...)
		g.Handle(cmp.Or(o.Path, "/mcp"), r.MCP)
		g.Handle(cmp.Or(o.SSEPath, "/sse"), r.SSE)
	})
	return r
}

func (r *Router) health(w http.ResponseWriter, _ *http.Request) {
	if r.MCP.closing.Err() != nil {
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte("ok\n")) // nobody waits for more than the status
}

// Shutdown shuts both handlers down; see [Handler.Shutdown].
func (r *Router) Shutdown(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- r.SSE.Shutdown(ctx) }()
	return errors.Join(r.MCP.Shutdown(ctx), <-ended)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp"
)

// RouterOptions configure a [Router]. Nil means the zero RouterOptions.
type RouterOptions struct {
	// Options configure both handlers.
	Options *Options
	// Middleware is applied to the handlers at /mcp and /sse, outermost first. A handler at
	// any other path does not have it.
	Middleware []func(http.Handler) http.Handler
}

// A Router is an [http.Handler] with the endpoints of one server: streamable HTTP at /mcp
// and /mcp/, HTTP+SSE at /sse and /sse/, and a health check at /healthz, which answers 200
// until Shutdown is called. For other paths, mount the handlers of [NewHandler] and
// [NewSSEHandler] on your own router. Use [NewRouter] to create a Router.
type Router struct {
	// MCP is the handler at /mcp, and SSE the handler at /sse, both without
	// RouterOptions.Middleware: to serve one at a second path, wrap it again, or it is not
	// authenticated there.
	MCP *Handler
	SSE *SSEHandler

	routes chi.Router
}

// NewRouter returns a Router that serves h. The options may be nil. It panics in the same
// cases as [NewHandler], and if a middleware is nil.
func NewRouter(h mcp.Handler, opts *RouterOptions) *Router {
	mustBeHandler("NewRouter", h)
	var o RouterOptions
	if opts != nil {
		o = *opts
	}
	for i, mw := range o.Middleware {
		if mw == nil {
			panic(fmt.Sprintf("mcphttp: NewRouter: RouterOptions.Middleware: middleware %d of %d is nil", i+1, len(o.Middleware)))
		}
	}
	r := &Router{MCP: NewHandler(h, o.Options), SSE: NewSSEHandler(h, o.Options), routes: chi.NewRouter()}
	r.routes.Get("/healthz", r.serveHealth)
	r.routes.Head("/healthz", r.serveHealth) // what wget --spider sends
	endpoints := r.routes.With(o.Middleware...)
	for _, end := range []string{"", "/"} { // clients do not follow redirects
		endpoints.Handle("/mcp"+end, r.MCP)
		endpoints.Handle("/sse"+end, r.SSE)
	}
	return r
}

// mustBeMade panics unless the Router was created by NewRouter.
func (r *Router) mustBeMade() {
	made.Check(r != nil && r.routes != nil, "mcphttp: a Router", "NewRouter")
}

// Handle registers a handler for a pattern of package chi, without Middleware. It must be
// called before the first request is served.
func (r *Router) Handle(pattern string, h http.Handler) {
	r.mustBeMade()
	r.routes.Handle(pattern, h)
}

// ServeHTTP implements [http.Handler].
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mustBeMade()
	r.routes.ServeHTTP(w, req)
}

func (r *Router) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if r.MCP.endpoint.Closing.Err() != nil {
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte("ok\n")) // only the status matters
}

// Shutdown shuts both handlers down; see [Handler.Shutdown].
func (r *Router) Shutdown(ctx context.Context) error {
	r.mustBeMade()
	ended := make(chan error, 1)
	go func() { ended <- r.SSE.Shutdown(ctx) }()
	return errors.Join(r.MCP.Shutdown(ctx), <-ended)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"cmp"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
)

var (
	core       = mcp.Internal(seam.Key{})
	web        = mcphttp.Internal(seam.Key{})
	background = tasks.Internal(seam.Key{})
)

// An Endpoint provides the sessions to show. It is a [*mcphttp.Handler], a [*mcphttp.SSEHandler],
// or any other type that can list its sessions.
type Endpoint interface {
	Sessions() iter.Seq[*mcp.Session]
}

// Options configure [NewHandler]. Nil means the zero Options.
type Options struct {
	// Endpoints are the endpoints that serve the handler. The page shows their sessions and
	// streams.
	Endpoints []Endpoint
	// Tasks are the task managers of the tools that run in the background.
	Tasks []*tasks.Manager
	// Authorize decides who may view and use the page. It returns the principal of calls made
	// from the page, for handlers and logs. A nil principal means one with the issuer
	// "psi/debug". If Authorize returns an error, the error is logged and the request is rejected
	// with 403. Nil means that only requests that this machine sends to a loopback address and
	// that no proxy has forwarded are served.
	//
	// Behind a proxy on the same machine that adds no forwarding headers, all requests appear to
	// come from this machine. Set Authorize in that case.
	Authorize func(r *http.Request) (*mcp.Principal, error)
	// AllowedHosts are the host names under which the page is reached, as in [mcphttp.Options].
	AllowedHosts []string
	// Apps is the origin of a host of MCP Apps for the same server, such as
	// "http://127.0.0.1:8081"; see [github.com/go-psi/psi/mcp/apps/host]. Tools with an app get a
	// button that shows the app there with the arguments in the form. The origin must use the
	// same host name as the page, because browsers treat localhost and 127.0.0.1 as different
	// sites. Empty means none.
	Apps string
	// ReadOnly disables the forms that make calls, cancel requests and end sessions.
	ReadOnly bool
	// Always observes the server even while the page is not in use, so that its first view shows
	// what happened before. It costs each request about as much as writing a log line.
	Always bool
	// Values shows the arguments and results of all requests. Secrets are redacted: values of
	// members whose names indicate a secret, and text that looks like a key or token. If Values
	// is false, arguments and results are shown only for calls made from the page.
	Values bool
	// Secret reports whether a member of arguments or results is a secret, in addition to members
	// whose names indicate one. Nil means no additional names.
	Secret func(member string) bool
	// Logger receives diagnostic messages. Nil means the logger of the server, if it is an
	// [mcp.Mux], an [mcp.Conn] or an [mcp.Upstream], and otherwise slog.Default.
	Logger *slog.Logger
}

func (o *Options) withDefaults(h mcp.Handler) Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.Endpoints = slices.Clone(opts.Endpoints)
	opts.Tasks = slices.Clone(opts.Tasks)
	opts.AllowedHosts = slices.Clone(opts.AllowedHosts)
	opts.Logger = cmp.Or(opts.Logger, core.LoggerOf(h))
	return opts
}

// Handler returns a handler that serves the page about h with the default options. endpoints are
// the endpoints that serve h. The returned handler may be mounted under any path. Handler panics
// if [NewHandler] does.
func Handler(h mcp.Handler, endpoints ...Endpoint) http.Handler {
	return NewHandler(h, &Options{Endpoints: endpoints})
}

// NewHandler returns a handler that serves the page about h. h is a [*mcp.Mux]; a [*mcp.Conn], to
// which NewHandler adds middleware; or any other handler, for which only calls made from the page
// are observed. The returned handler may be mounted under any path, and is safe for concurrent
// use. NewHandler panics if h, an endpoint or a task manager is nil, or if Options.Apps is not an
// origin.
func NewHandler(h mcp.Handler, opts *Options) http.Handler {
	if f, ok := h.(mcp.HandlerFunc); h == nil || ok && f == nil {
		panic("debug: NewHandler: the handler is nil")
	}
	o := opts.withDefaults(h)
	if i := slices.Index(o.Endpoints, nil); i >= 0 {
		panic(fmt.Sprintf("debug: NewHandler: endpoint %d of %d is nil", i+1, len(o.Endpoints)))
	}
	if i := slices.Index(o.Tasks, nil); i >= 0 {
		panic(fmt.Sprintf("debug: NewHandler: manager %d of %d of tasks is nil", i+1, len(o.Tasks)))
	}
	o.Apps = originOfApps(o.Apps)
	p := &page{
		handler: h, opts: o, rules: redact.Rules{Name: o.Secret, Text: redact.Text},
		recorder: newRecorder(o.Values),
		runs:     runs{byID: map[string]*run{}},
		guard:    web.Guard(&mcphttp.Options{AllowedHosts: o.AllowedHosts}),
	}
	p.attention.init(p.startObserving)
	if o.Always {
		p.attention.watchForever()
	}
	return p
}

// A page is the handler of the page about one server.
type page struct {
	handler   mcp.Handler
	opts      Options
	rules     redact.Rules
	guard     func(*http.Request) string
	recorder  *recorder
	attention attention
	runs      runs
	server    cachedServer
	servers   shutdowns
}

// startObserving lets the recorder observe the handler until stop is called.
func (p *page) startObserving() (stop func()) {
	switch h := p.handler.(type) {
	case *mcp.Mux:
		return core.Surround(h, p.recorder.middleware)
	case interface{ Use(mw ...mcp.Middleware) }:
		p.recorder.installed.Do(func() { h.Use(p.recorder.whileActive) })
	}
	p.recorder.active.Store(true)
	return func() { p.recorder.active.Store(false) }
}

// ServeHTTP implements [http.Handler].
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// There is one address, and everything else is in the query, so that any router can mount
	// the page anywhere.
	p.setHeaders(w.Header())
	caller, err := p.authorize(r)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPost:
		p.servePost(w, r, caller)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, POST")
		p.fail(w, r, failure{http.StatusMethodNotAllowed, "the page takes GET and POST"})
	case query.Has("static"):
		serveStatic(w, r, query.Get("static"))
	case query.Has("events"):
		p.serveEvents(w, r, caller)
	default:
		p.attention.extend()
		p.serveView(w, r, caller)
	}
}

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
	"time"

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

// An Endpoint has sessions to show: a [*mcphttp.Handler], a [*mcphttp.SSEHandler], or anything
// else that knows sessions.
type Endpoint interface {
	Sessions() iter.Seq[*mcp.Session]
}

// Options configure [NewHandler]. Nil means the zero Options. Of every number, 0 means the
// default.
type Options struct {
	// Endpoints serve the handler, and have sessions and streams to show.
	Endpoints []Endpoint
	// Tasks are the managers of the tools that run in the background.
	Tasks []*tasks.Manager
	// Authorize decides who may see the page and use it. It returns the principal of the calls
	// that are made from the page, which handlers and logs get; nil means one with the issuer
	// "psi/debug". Its error is logged, and the request refused with 403. Nil means that
	// requests are served that this machine sends to a loopback address, and that no proxy has
	// forwarded.
	//
	// A proxy on the same machine which does not say that it forwards makes all the world come
	// from this machine: behind one, set Authorize.
	Authorize func(r *http.Request) (*mcp.Principal, error)
	// AllowedHosts are the names under which the page is reached, as in [mcphttp.Options].
	AllowedHosts []string
	// Apps is the origin of a host of MCP Apps for the same server, such as "http://127.0.0.1:8081"; see
	// [github.com/go-psi/psi/mcp/apps/host]. Tools with an app get a button that shows the app there, with the
	// arguments in the form. Its name must be the one under which the page is reached: browsers
	// treat localhost and 127.0.0.1 as different sites. Empty means that there is none.
	Apps string
	// ReadOnly serves the page without the forms that call, cancel and end something.
	ReadOnly bool
	// Always observes the server while no one looks, too, so that the first look shows what
	// happened before. It costs each request about as much as writing a line of log.
	Always bool
	// Values shows the arguments and results of all requests, without the secrets in them:
	// values of members whose names indicate a secret, and what looks like a key or a token in
	// texts. Without it, only those of calls that were made from the page are shown.
	Values bool
	// Secret reports whether a member of arguments and results is a secret, in addition to those
	// whose names indicate one. Nil means no further names.
	Secret func(member string) bool
	// MaxRecent is how many requests are remembered that have ended. 0 means 200.
	MaxRecent int
	// MaxValue bounds each value that is shown, in bytes. 0 means 64 KiB.
	MaxValue int
	// MaxWatchers bounds the pages that are updated live at the same time. 0 means 32.
	MaxWatchers int
	// MaxCalls bounds the calls of the page that are under way at the same time, and CallTimeout
	// how long one takes, with all that the user has to answer. 0 means 16, and 10 minutes.
	MaxCalls    int
	CallTimeout time.Duration
	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.Endpoints = slices.Clone(opts.Endpoints)
	opts.Tasks = slices.Clone(opts.Tasks)
	opts.AllowedHosts = slices.Clone(opts.AllowedHosts)
	opts.MaxRecent = atLeastOne(opts.MaxRecent, 200)
	opts.MaxValue = atLeastOne(opts.MaxValue, 64<<10)
	opts.MaxWatchers = atLeastOne(opts.MaxWatchers, 32)
	opts.MaxCalls = atLeastOne(opts.MaxCalls, 16)
	opts.CallTimeout = atLeastOne(opts.CallTimeout, 10*time.Minute)
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	return opts
}

// atLeastOne returns the value, or the default if it is not positive.
func atLeastOne[T int | time.Duration](value, byDefault T) T {
	if value <= 0 {
		return byDefault
	}
	return value
}

// Handler returns a handler that serves the page about h, which the endpoints serve, with the
// default options. It may be mounted under any path. It panics as [NewHandler] does.
func Handler(h mcp.Handler, endpoints ...Endpoint) http.Handler {
	return NewHandler(h, &Options{Endpoints: endpoints})
}

// NewHandler returns a handler that serves the page about h: a [*mcp.Mux]; a [*mcp.Conn], to
// which it adds middleware; or any other handler, of which only the calls are observed that are
// made from the page. It may be mounted under any path, and is safe for concurrent use. It panics
// if h, an endpoint or a manager of tasks is nil, or if Options.Apps is not an origin.
func NewHandler(h mcp.Handler, opts *Options) http.Handler {
	if f, ok := h.(mcp.HandlerFunc); h == nil || ok && f == nil {
		panic("debug: NewHandler: the handler is nil")
	}
	o := opts.withDefaults()
	if i := slices.Index(o.Endpoints, nil); i >= 0 {
		panic(fmt.Sprintf("debug: NewHandler: endpoint %d of %d is nil", i+1, len(o.Endpoints)))
	}
	if i := slices.Index(o.Tasks, nil); i >= 0 {
		panic(fmt.Sprintf("debug: NewHandler: manager %d of %d of tasks is nil", i+1, len(o.Tasks)))
	}
	o.Apps = originOfApps(o.Apps)
	p := &page{
		handler: h, opts: o, rules: redact.Rules{Name: o.Secret, Text: redact.Text},
		recorder: newRecorder(&o),
		guard:    web.Guard(&mcphttp.Options{AllowedHosts: o.AllowedHosts}),
	}
	p.runs.init(&o)
	p.attention.init(p.startObserving, o.MaxWatchers)
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
		p.attention.glance()
		p.serveView(w, r, caller)
	}
}

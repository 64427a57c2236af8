// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/seal"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp/store"
)

// MuxOptions configure a [Mux]. Nil means the zero MuxOptions.
type MuxOptions struct {
	// Title, Description, WebsiteURL and Icons say more of the server than its
	// name and version.
	Title, Description, WebsiteURL string
	Icons                          []Icon
	// Instructions tell the model how to use the server.
	Instructions string
	// Capabilities are declared besides what is registered: extensions,
	// experimental features, or a kind of thing that is registered only later.
	Capabilities *ServerCapabilities
	// PageSize is how many items of its own the mux puts on one page of a list. What
	// a mount or a [ResourceLister] returns as one page is not divided, so a page
	// can have more. 0 means 1000.
	PageSize int
	// MountTimeout is how long a list waits for a mounted server, before it is sent
	// without that server's part. The servers are asked at once; discovery and
	// subscriptions wait no longer than a second. A gateway behind a gateway should
	// have the shorter timeout. 0 means 5 seconds, a negative value no bound.
	MountTimeout time.Duration
	// ListCache are the cache hints of lists and of server/discover; the zero
	// value means do not keep them, and private. Scope public promises that no
	// list depends on the caller.
	ListCache Cacheable
	// ListChangedInterval is the least time between two announcements of the
	// same list's change: the first goes out at once, those after it are
	// joined. 0 means 100 ms.
	ListChangedInterval time.Duration
	// StateKeys seal the state of questions (see [Ask]) and the cursors of lists: the
	// first seals, all open. Servers that share the load of one endpoint must share
	// them. Each has at least 16 bytes. Nil means a random key of this process.
	StateKeys [][]byte
	// StateTTL is how long a client may take to answer. 0 means an hour.
	StateTTL time.Duration
	// MaxState limits the answers and [Once] values of one call, in bytes of JSON. A
	// call that exceeds it fails. 0 means 256 KiB.
	MaxState int
	// StateStore makes the state of questions single-use: a client that sends the
	// same answers twice is refused the second time, at every replica that shares the
	// store, also after an error. Nil means that a state can be used until StateTTL
	// has passed.
	StateStore store.Values
	// MaxSubscriptions limits the resources that one subscription names. 0 means 1000.
	MaxSubscriptions int
	// MaxListeners limits the subscriptions that one authenticated caller has open at
	// once. Those of callers whom nobody authenticated are limited by their transport
	// only. 0 means 1000.
	MaxListeners int
	// Lint are the profiles that the schemas of tools are checked against when
	// they are registered; what is found is logged as a warning. Nil means the
	// portable profile, an empty slice none.
	Lint []jsonschema.Profile
	// Logger gets what the mux has to say to its operator. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *MuxOptions) withDefaults() MuxOptions {
	var opts MuxOptions
	if o != nil {
		opts = *o
	}
	if opts.PageSize <= 0 {
		opts.PageSize = 1000
	}
	if opts.MountTimeout == 0 {
		opts.MountTimeout = 5 * time.Second
	}
	if opts.ListChangedInterval <= 0 {
		opts.ListChangedInterval = 100 * time.Millisecond
	}
	if opts.StateTTL <= 0 {
		opts.StateTTL = time.Hour
	}
	if opts.MaxSubscriptions <= 0 {
		opts.MaxSubscriptions = maxSubscriptions
	}
	if opts.MaxListeners <= 0 {
		opts.MaxListeners = maxListeners
	}
	if opts.MaxState <= 0 {
		opts.MaxState = 256 << 10
	}
	if opts.Lint == nil {
		opts.Lint = []jsonschema.Profile{jsonschema.Portable}
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return opts
}

// A Mux routes MCP requests to the handlers of tools, prompts, resources and
// methods that are registered on it, and answers by itself what follows from
// them: the lists, discovery, completion and subscriptions. It is a Handler:
// mounted in another mux, served by any transport, called by a test.
//
// Registration may happen at any time, also while the mux is serving. Mistakes
// of registration panic and name both places. All methods may be called by
// several goroutines at once.
type Mux struct {
	*registry
	view   bool         // made by With or Group
	inline []Middleware // of a view; only added to, under the registration lock
}

// NewMux makes a mux for a server of that name and version.
func NewMux(name, version string, opts *MuxOptions) *Mux {
	o := opts.withDefaults()
	ring, err := seal.NewRing(o.StateKeys...)
	if err != nil {
		panic(fmt.Sprintf("mcp: NewMux: MuxOptions.StateKeys: %v", err))
	}
	g := &registry{
		opts:   o,
		info:   Implementation{Name: name, Version: version, Title: o.Title, Description: o.Description, WebsiteURL: o.WebsiteURL, Icons: o.Icons},
		sealer: &sealer{server: name, ring: ring, ttl: o.StateTTL, max: o.MaxState, used: o.StateStore, logger: o.Logger},
		hub:    newHub(o.ListChangedInterval, o.MaxListeners),
	}
	g.infoJSON = mustMarshal(&g.info)
	g.init()
	return &Mux{registry: g}
}

// ServeMCP implements [Handler].
func (m *Mux) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	req.call.serverInfo.CompareAndSwap(nil, &m.infoJSON)
	return (*m.chain.Load())().ServeMCP(contextWithRequest(ctx, req), req)
}

// Use adds middleware around everything that the mux serves: all methods,
// unknown ones and notifications included. The first added is outermost. What decides
// by the name of a resource who may read it must also decide, for subscriptions/listen,
// who is told of its updates; middleware of [Mux.With] is asked for both. On a
// view made by [Mux.With] or [Mux.Group] it wraps what is registered there
// afterwards.
func (m *Mux) Use(mw ...Middleware) {
	m.update(func() {
		if m.view {
			m.inline = append(m.inline, mw...)
			return
		}
		m.use = append(m.use, mw...)
		m.wrap()
	})
}

// With returns a view of the mux: what is registered through it is wrapped in
// mw, and goes into the same mux.
func (m *Mux) With(mw ...Middleware) *Mux {
	return &Mux{registry: m.registry, view: true, inline: slices.Concat(m.around(), mw)}
}

// around is the middleware around what is registered through m.
func (m *Mux) around() []Middleware {
	registering.Lock()
	defer registering.Unlock()
	return m.inline
}

// Group calls fn with a view of the mux that can have middleware of its own.
func (m *Mux) Group(fn func(g *Mux)) { fn(m.With()) }

// Tool registers a tool. If h is a [Describer], the tool is listed.
func (m *Mux) Tool(name string, h Handler) {
	if name == "" {
		panic("mcp: Mux.Tool: the name is empty")
	}
	e := m.entry("tool", name, h)
	e.tool, e.headers = m.describeTool(e)
	m.register(&m.tools, e)
}

// Prompt registers a prompt. If h is a [Describer], the prompt is listed.
func (m *Mux) Prompt(name string, h Handler) {
	if name == "" {
		panic("mcp: Mux.Prompt: the name is empty")
	}
	e := m.entry("prompt", name, h)
	e.prompt = describePrompt(e)
	m.register(&m.prompts, e)
}

// Resource registers a resource under its URI, or all the resources that an RFC
// 6570 template such as "notes://{user}/{+path}" matches; the handler gets the
// values of the variables from [Request.PathValue]. A URI goes before templates,
// and a more specific template before a less specific one; two templates of
// which neither is more specific must not overlap. A URI that belongs to another
// registration once what needs no encoding is decoded is not found. If h is a
// [Describer], the resource or template is listed.
func (m *Mux) Resource(pattern string, h Handler) {
	if pattern == "" {
		panic("mcp: Mux.Resource: the pattern is empty")
	}
	e := m.entry("resource", pattern, h)
	e.parseTemplate()
	e.checkTemplate(h)
	e.resource = describeResource(e)
	if e.template != nil {
		m.registerTemplate(e)
		return
	}
	m.register(&m.resources, e)
}

// Handle registers the handler of a method or notification that the mux does
// not serve by itself.
func (m *Mux) Handle(method string, h Handler) {
	if method == "" {
		panic("mcp: Mux.Handle: the method is empty")
	}
	if _, ok := builtin[method]; ok {
		panic(fmt.Sprintf("mcp: Mux.Handle: method %q is served by the mux itself; use Tool, Prompt, Resource or a middleware", method))
	}
	e := m.entry("method", method, h)
	m.register(&m.methods, e)
}

// RemoveTool removes tools; names that are not registered are ignored.
func (m *Mux) RemoveTool(names ...string) { m.remove(&m.tools, names) }

// RemovePrompt removes prompts; names that are not registered are ignored.
func (m *Mux) RemovePrompt(names ...string) { m.remove(&m.prompts, names) }

// RemoveResource removes resources and templates by the pattern under which
// they were registered; unknown ones are ignored.
func (m *Mux) RemoveResource(patterns ...string) {
	m.remove(&m.resources, patterns)
	m.remove(&m.templates, patterns)
}

// RemoveHandle removes handlers of methods; unknown ones are ignored.
func (m *Mux) RemoveHandle(methods ...string) { m.remove(&m.methods, methods) }

// ResourceUpdated tells those who subscribed to the resource that it changed.
// It never waits for them.
func (m *Mux) ResourceUpdated(uri string) { m.hub.publish(Change{NotificationResourceUpdated, uri}) }

// Walk calls fn for everything that is registered, the muxes mounted in this
// one included, until fn returns an error: method is tools/call, prompts/get or
// resources/read with the name, URI or template, or the method of [Mux.Handle]
// with an empty name. A mounted Handler that is no Mux is not entered.
func (m *Mux) Walk(fn func(method, name string, h Handler) error) error {
	return m.walk(fn)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/seal"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp/store"
)

// MuxOptions configure a [Mux]. Nil means the zero MuxOptions. For limits, 0 means the
// default and a negative value means no limit.
type MuxOptions struct {
	// Title, Description, WebsiteURL and Icons are optional descriptive fields that clients
	// may show.
	Title, Description, WebsiteURL string
	Icons                          []Icon
	// Instructions tell the model how to use the server.
	Instructions string
	// Capabilities are declared in addition to those implied by the registrations: for
	// example extensions, experimental features, or tools, prompts and resources that are
	// registered later. By default, a mux that is empty when it is served, or that has
	// connections mounted, declares tools, prompts and resources, since any of them may be
	// added.
	Capabilities *ServerCapabilities
	// PageSize is the maximum number of the mux's own items on one page of a list. Pages of
	// a mount or [Resource].List are not split, so a page may contain more items. Some
	// clients read only the first page. The default is 1000.
	PageSize int
	// MountTimeout is how long a list waits for a mounted server before it is sent without that
	// server's items. Mounted servers are queried concurrently. Subscriptions wait a shorter
	// time, and so do lists for some time after a list has waited in vain. If gateways are
	// nested, the inner one should have the shorter timeout. The default is 5 seconds; a
	// negative value means no limit.
	MountTimeout time.Duration
	// ListCache holds the cache hints of lists and of server/discover. The zero value means
	// private and not cacheable. Use the scope public only if no list depends on the caller.
	ListCache Cacheable
	// StateKeys encrypt the state of questions (see [Ask]) and the cursors of lists. The
	// first key encrypts; all keys decrypt. The replicas of an endpoint must share them. A
	// key must have at least 16 bytes. Nil means a random key for this process.
	StateKeys [][]byte
	// StateTTL is how long a client may take to answer a question. The default is an hour.
	StateTTL time.Duration
	// StateStore makes the state of questions single-use: if a client sends the same answers
	// twice, every replica that shares the store rejects the second request, even if the
	// first one failed. If it is nil, a state can be reused until StateTTL has passed.
	StateStore store.Values
	// Bus carries changes between replicas. If the tools, prompts, resources or mounts of one
	// mux change while it is in use, or [Mux.ResourceUpdated] is called, subscribers at all
	// muxes with the same name and bus are notified. If messages are lost or the bus was
	// unavailable, subscribers are notified of everything they subscribed to. A process that
	// serves no clients may call ResourceUpdated on behalf of those that do. A mounted mux
	// does not use the Bus of the outer mux and must set its own. If Bus is nil, only the
	// subscribers at this mux are notified.
	Bus store.Topics
	// PublicError decides what peers see of the errors of handlers and middleware. It
	// returns the error to send for err; its text becomes the text of a failed tool's result
	// or the message of an internal error. An [*Error] is sent as the error of the request,
	// and nil sends an error without details. Middleware and logs receive err itself.
	//
	// PublicError is called for errors of registered and mounted handlers in this process,
	// unless they are or wrap an [*Error]. It is called after the PublicError of a mounted
	// mux. It is not called for invalid arguments or for a tool's result with its own
	// content. It may be called concurrently. If it is nil, peers see the text of err or, if
	// err is or wraps a [*PrivateError], its Public text.
	PublicError func(ctx context.Context, err error) error
	// Lenient repairs, instead of rejecting, arguments of tools made by [ToolFunc] that are
	// invalid in ways that are common among hosts and models: unknown members are dropped,
	// and a string that is the JSON encoding of a value of the expected type, such as "7" or
	// "[1,2]", is replaced by that value. Package middleware counts and logs such calls; see
	// [CallToolResult.Mended]. The middleware of the tool (see [Mux.With]) and the check of its
	// Mcp-Param headers see the repaired arguments. Middleware of the mux (see [Mux.Use]), which
	// may limit rates, sees them as they were sent.
	Lenient bool
	// NoLint turns off the warnings about registrations that are rarely intended, and about tool
	// schemas that clients are known to reject or complain about. Registering an invalid schema
	// always panics.
	NoLint bool
	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger

	// Limits that only tests lower.
	maxState, maxSubscriptions, maxListeners int
}

func (o *MuxOptions) withDefaults() MuxOptions {
	var opts MuxOptions
	if o != nil {
		opts = *o
	}
	opts.PageSize = limit(opts.PageSize, 1000, math.MaxInt)
	opts.MountTimeout = limit(opts.MountTimeout, 5*time.Second, math.MaxInt64)
	opts.StateTTL = limit(opts.StateTTL, time.Hour, math.MaxInt64)
	opts.maxState = cmp.Or(opts.maxState, maxState)
	opts.maxSubscriptions = cmp.Or(opts.maxSubscriptions, maxSubscriptions)
	opts.maxListeners = cmp.Or(opts.maxListeners, maxListeners)
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return opts
}

// limit returns option if it is positive, byDefault if it is 0, and unlimited if it is
// negative.
func limit[T int | time.Duration](option, byDefault, unlimited T) T {
	switch {
	case option > 0:
		return option
	case option < 0:
		return unlimited
	}
	return byDefault
}

// A Mux routes MCP requests to the registered handlers of tools, prompts, resources and
// methods. It serves lists, discovery, completion and subscriptions itself, based on the
// registrations. It is a Handler that can be served by any transport or mounted in
// another Mux. It must be created by [NewMux].
//
// Handlers may be registered and removed at any time, even while the mux is serving.
// Registering an invalid or conflicting handler panics; for a conflict, the message names
// both call sites. [Mux.Update] returns an error instead, and applies several changes
// atomically. A Mux is safe for concurrent use.
type Mux struct {
	*registry
	view   bool         // created by With, Group or Update
	inline []Middleware // of a view; append-only, guarded by registry.mu
	draft  *draft       // of a view created by Update; nil means that registrations are applied immediately
}

// NewMux returns a Mux for a server with the given name and version. It panics if name is
// empty or [MuxOptions].StateKeys are invalid.
func NewMux(name, version string, opts *MuxOptions) *Mux {
	mustBeNamed("NewMux", name)
	o := opts.withDefaults()
	ring, err := seal.NewRing(o.StateKeys...)
	if err != nil {
		panic(fmt.Sprintf("mcp: NewMux: MuxOptions.StateKeys: %v", err))
	}
	g := &registry{
		opts:   o,
		info:   Implementation{Name: name, Version: version, Title: o.Title, Description: o.Description, WebsiteURL: o.WebsiteURL, Icons: o.Icons},
		sealer: &sealer{server: name, ring: ring, ttl: o.StateTTL, max: o.maxState, used: o.StateStore, logger: o.Logger},
		hub:    newHub(changeInterval, o.maxListeners),
	}
	g.bus = newBus(name, g.hub, &o)
	g.infoJSON = mustMarshal(&g.info)
	g.briefJSON = mustMarshal(&Implementation{Name: name, Version: version, Title: o.Title})
	g.declared.Store(uint32(declaredFeatures(orEmpty(o.Capabilities))))
	g.snap.Store(new(snapshot))
	must(g.wrap(nil))
	return &Mux{registry: g}
}

// mustBeMade panics unless the Mux was created by NewMux.
func (m *Mux) mustBeMade() {
	made.Check(m != nil && m.registry != nil, "mcp: a Mux", "NewMux")
}

// ServeMCP implements [Handler].
func (m *Mux) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	m.mustBeMade()
	m.bus.markServed()
	req.sharedCall().server.CompareAndSwap(nil, m.registry)
	req = req.withNormalURIs(m.opts.maxSubscriptions)
	ctx = contextWithRequest(ctx, req)
	s := m.load()
	h := s.chain()
	for _, o := range s.outermost {
		h = o.wrap(h)
	}
	res, err := h.ServeMCP(ctx, req)
	if req.spelled != nil && req.aboutURI() {
		res, err = req.asSpelled(res, err)
	}
	return m.opts.applyPublicError(ctx, res, err)
}

// Use adds middleware around everything that the mux serves, including unknown methods and
// notifications, outermost first. Middleware that restricts who may read a resource must
// also restrict who receives its updates through subscriptions/listen; middleware of
// [Mux.With] is called for both. On a view created by [Mux.With] or [Mux.Group], Use wraps
// the handlers registered through it afterwards.
func (m *Mux) Use(mw ...Middleware) {
	m.mustBeMade()
	mustBeMiddleware("Mux.Use", mw)
	if !m.view {
		must(m.wrap(mw))
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inline = append(m.inline, mw...)
}

// With returns a view of the mux: handlers registered through it are wrapped in mw and
// belong to the same mux. The middleware sees every request about the registration, with
// its own [Request.Method]: calling the tool; getting the prompt and completing its
// arguments; reading the resource, completing the variables of its template, listing the
// resources that the template matches, and subscribing to them. Subscribing uses
// [MethodSubscribe] if there is a [Resource.Subscribe], and otherwise reads the resource.
// The middleware does not see the lists that contain the item itself; use [Mux.Use] to
// hide it there.
func (m *Mux) With(mw ...Middleware) *Mux {
	m.mustBeMade()
	mustBeMiddleware("Mux.With", mw)
	return &Mux{registry: m.registry, view: true, inline: slices.Concat(m.around(), mw), draft: m.draft}
}

// around returns the middleware of a view.
func (m *Mux) around() []Middleware {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inline
}

// Group calls fn with a new view of the mux. Middleware that fn adds with [Mux.Use] applies
// to that view only.
func (m *Mux) Group(fn func(g *Mux)) {
	mustBeFunc("Mux.Group", fn == nil)
	fn(m.With())
}

// Tool registers a tool. If h is a [Describer], the tool is listed.
func (m *Mux) Tool(name string, h Handler) { must(m.register("tool", name, h)) }

// Prompt registers a prompt. If h is a [Describer], the prompt is listed.
func (m *Mux) Prompt(name string, h Handler) { must(m.register("prompt", name, h)) }

// Resource registers a resource under its URI, or all resources that match an RFC 6570
// template such as "notes://{user}/{+path}"; [Request.PathValue] returns the values of the
// variables. A URI takes precedence over templates, and a more specific template over a
// less specific one. Two templates may overlap only if one is more specific. If h is a
// [Describer], the resource or template is listed as it is spelled here.
//
// Spellings of one URI are equal: "KBInfo://a b" is "kbinfo://a%20b", and "https://Example.com"
// is "https://example.com/". Middleware, handlers and [Resource.Subscribe] see the normal form
// of a URI: spaces, braces and other characters that cannot occur in a URI are
// percent-encoded, with hexadecimal digits in upper case; the scheme and, for http and https, the host are in lower case; an empty path
// of http and https is "/". Results and notifications have the caller's spelling. Characters
// that are encoded without need remain so, and a URI is not found if it would match another
// registration after they are decoded.
func (m *Mux) Resource(pattern string, h Handler) { must(m.register("resource", pattern, h)) }

// Handle registers the handler of a method or notification that the mux does not serve
// itself.
func (m *Mux) Handle(method string, h Handler) { must(m.register("method", method, h)) }

// RemoveTool removes tools; names that are not registered are ignored.
func (m *Mux) RemoveTool(names ...string) { must(m.remove("tool", names)) }

// RemovePrompt removes prompts; names that are not registered are ignored.
func (m *Mux) RemovePrompt(names ...string) { must(m.remove("prompt", names)) }

// RemoveResource removes resources and templates by the pattern they were registered under;
// patterns that are not registered are ignored.
func (m *Mux) RemoveResource(patterns ...string) { must(m.remove("resource", patterns)) }

// RemoveMethod removes the handlers of methods; methods that are not registered are ignored.
func (m *Mux) RemoveMethod(methods ...string) { must(m.remove("method", methods)) }

// ResourceUpdated notifies the subscribers of a resource that it has changed. With
// [MuxOptions].Bus, it also notifies subscribers at other replicas. It does not wait for
// delivery. [Resource.Subscribe] decides who may subscribe. [ExpandURI] makes the URI of a
// template; other spellings of it are accepted as well. A URI that no resource or template of
// the mux matches is logged, once.
func (m *Mux) ResourceUpdated(uri string) {
	m.mustBeMade()
	c := Change{NotificationResourceUpdated, uritemplate.Normal(uri)}
	m.warnUnroutable(c.URI)
	m.hub.publish(c)
	m.bus.publish(changeSet{c})
}

// Walk calls fn for each registered handler, including those of mounted muxes, until fn
// returns an error, which Walk returns. For tools, prompts and resources, method is
// tools/call, prompts/get or resources/read, and name is the name, URI or template. For
// handlers registered with [Mux.Handle], method is their method and name is empty. Mounted
// handlers that are not a Mux are skipped.
func (m *Mux) Walk(fn func(method, name string, h Handler) error) error {
	m.mustBeMade()
	mustBeFunc("Mux.Walk", fn == nil)
	return m.walk(func(e *entry, name string) error {
		switch e.kind {
		case "tool":
			return fn(MethodCallTool, name, e.handler)
		case "prompt":
			return fn(MethodGetPrompt, name, e.handler)
		case "resource":
			return fn(MethodReadResource, name, e.handler)
		}
		return fn(e.name, "", e.handler)
	})
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/tasking"
)

// A mount is a handler that is mounted under a prefix of a mux.
type mount struct {
	prefix
	handler  Handler      // as passed to Mount, without its middleware
	child    *Mux         // the handler, if it is a Mux
	serve    Handler      // handler, whose states and tasks are sealed, wrapped in around
	around   []Middleware // outermost first
	site     string
	parent   *registry
	hadTasks atomic.Bool // see passesTasks

	warned onceEach // problems in its lists

	mu   sync.Mutex
	hung time.Time // when a list last waited in vain for MountTimeout; zero after an answer
}

// Mount serves another Mux, or any Handler that acts as a server, such as a [Conn] or an
// [Upstream], under a prefix. The prefix includes the separator: with "github_", the tool
// "search" becomes "github_search". Prompts are renamed in the same way. The URI "notes://a"
// becomes "mount:github_:notes://a", also in the results of tools and prompts, except for
// URIs that clients fetch from the web directly. The URIs of pages of MCP Apps stay URIs of
// pages, also in the metadata of the tools that use them. Custom methods are not mounted.
//
// Mounts are disjoint: Mount panics if one prefix begins with another. All URIs that begin
// with "mount:github_:" belong to the mount. The mux itself may have tools and prompts whose
// names begin with the prefix; they take precedence over those of the mount.
//
// Every listed item can be called. An item of a mounted server is omitted from the list if a
// call would not reach it, or if clients could not read it, for example a tool whose input
// schema does not describe an object. A schema that only lacks its type is completed. Each
// such item is logged once.
//
// For lists and subscriptions, all mounted handlers are called concurrently. Handlers that do
// not respond within [MuxOptions].MountTimeout are omitted.
//
// The middleware of the mux wraps the middleware of the mounted handler. The mux announces
// list changes and resource updates of the mounted handler.
func (m *Mux) Mount(prefix string, h Handler) { must(m.mount(prefix, h)) }

func (m *Mux) mount(under string, h Handler) error {
	m.mustBeMade()
	site := callSite()
	if isNilHandler(h) {
		return registrationErrorf("mount %q at %s: the handler is nil", under, site)
	}
	if !prefix(under).isValid() {
		return registrationErrorf("mount %q at %s: a prefix must have 1 to 64 letters, digits, _ and -, as the names of tools must", under, site)
	}
	h, around := unwrap(h)
	mt := &mount{prefix: prefix(under), handler: h, around: slices.Concat(m.around(), around), site: site, parent: m.registry}
	mt.child, _ = h.(*Mux)
	mt.serve = wrap(HandlerFunc(mt.serveSealed), mt.around)
	return m.edit(func(next *snapshot, a *announcement) error {
		a.remount()
		return next.addMount(mt)
	})
}

// Unmount removes the handler mounted under prefix, if any.
func (m *Mux) Unmount(prefix string) {
	m.mustBeMade()
	must(m.edit(func(next *snapshot, a *announcement) error {
		if i, found := next.searchMount(prefix); found {
			next.mounts = slices.Delete(next.mounts, i, i+1)
			a.remount()
		}
		return nil
	}))
}

// searchMount returns the index of the mount under a prefix, or where it would be inserted.
func (s *snapshot) searchMount(under string) (i int, found bool) {
	return slices.BinarySearchFunc(s.mounts, under, func(mt *mount, under string) int { return strings.Compare(string(mt.prefix), under) })
}

// addMount adds a mount, unless a name or URI could belong to it and to another mount, or to a
// resource of the mux. Routing by the longest match was rejected, because a name could belong
// to both. A catch-all template of the mux would otherwise capture every resource of its
// mounts.
func (s *snapshot) addMount(mt *mount) error {
	for _, other := range s.mounts {
		switch a, b := string(mt.prefix), string(other.prefix); {
		case a == b:
			return registrationErrorf("mount %q at %s: something is mounted there at %s already", a, mt.site, other.site)
		case strings.HasPrefix(a, b), strings.HasPrefix(b, a):
			return registrationErrorf("mount %q at %s: %q is mounted at %s, and names could belong to both; choose prefixes of which none begins with another",
				a, mt.site, b, other.site)
		}
	}
	for _, t := range s.tables("resource") {
		for _, e := range *t {
			if _, ok := mt.innerURI(e.key); ok {
				return mt.errReserved(e)
			}
		}
	}
	if mt.child != nil && mt.child.contains(mt.parent) {
		return registrationErrorf("mount %q at %s: the mux would contain itself", mt.prefix, mt.site)
	}
	i, _ := s.searchMount(string(mt.prefix))
	s.mounts = slices.Insert(s.mounts, i, mt)
	return nil
}

// errReserved returns the error for a resource of the mux whose URI belongs to the mount.
func (mt *mount) errReserved(e *entry) error {
	reserved := mt.uris()
	if strings.HasPrefix(e.key, pageScheme) {
		reserved = mt.pages()
	}
	return registrationErrorf("resource %q registered at %s: URIs that begin with %q belong to the mount at %s", e.name, e.site, reserved, mt.site)
}

// contains reports whether other is g, or mounted in it.
func (g *registry) contains(other *registry) bool {
	return g == other || slices.ContainsFunc(g.load().mounts, func(mt *mount) bool { return mt.child != nil && mt.child.contains(other) })
}

// mountOf returns the mount that a name belongs to, or nil. A URI must be in normal form.
func (s *snapshot) mountOf(kind, name string) *mount {
	under := name
	if kind == "resource" {
		under = string(prefixIn(name))
	}
	// No prefix begins with another. So of all prefixes that are not after the name, only the
	// last one can be its prefix.
	i, found := s.searchMount(under)
	if !found {
		i--
	}
	if i < 0 {
		return nil
	}
	if _, ok := s.mounts[i].inner(kind, name); !ok {
		return nil
	}
	return s.mounts[i]
}

// serveNamed serves a request under its inner name.
func (mt *mount) serveNamed(ctx context.Context, req *Request, kind string) (Result, error) {
	outer := req.Name()
	if kind == "resource" {
		outer = req.spelling(outer)
	}
	name, _ := mt.inner(kind, outer)
	if kind == "resource" && name == "" {
		return nil, NewResourceNotFoundError(req.Name())
	}
	inner := req.withName(name)
	inner.mounts += string(mt.prefix) + "/"
	inner.outer = req
	res, err := mt.serve.ServeMCP(contextWithRequest(ctx, inner), inner)
	if err != nil {
		return nil, outerError(err, kind, name, req.Name())
	}
	if res != nil && res.base().ResultType == tasking.ResultTask {
		return res, nil // sealed already, or a task of the mux itself
	}
	return mt.result(res), nil
}

// complete forwards a completion to the mount, with the inner name in its reference.
func (mt *mount) complete(ctx context.Context, req *Request, p *CompleteParams, kind, name string) (Result, error) {
	inner, _ := mt.inner(kind, name)
	spelled, _ := mt.inner(kind, req.spelling(name))
	params, err := completionOf(req, p, spelled)
	if err != nil {
		return nil, err
	}
	renamed, err := req.WithParams(params)
	if err != nil {
		return nil, err
	}
	res, err := mt.serve.ServeMCP(contextWithRequest(ctx, renamed), renamed)
	if err != nil {
		return nil, outerError(err, kind, inner, name)
	}
	return mt.result(res), nil
}

// outerError returns the error of a mounted handler, with the outer name if the error is
// about an unknown name.
func outerError(err error, kind, inner, outer string) error {
	if kind == "resource" && isResourceNotFound(err) {
		return NewResourceNotFoundError(outer)
	}
	e, ok := errors.AsType[*Error](err)
	if unknown := NewUnknownNameError(Kind(kind), inner); ok && e.Code == unknown.Code && e.Message == unknown.Message {
		return NewUnknownNameError(Kind(kind), outer)
	}
	return err
}

// maxShortTimeout is the maximum time for which subscriptions wait for mounts, and lists for
// mounts that hang, unless MuxOptions.MountTimeout is less. No change is lost: if a mount
// acknowledges later, everything in it is treated as changed.
const maxShortTimeout = time.Second

// shortTimeout returns the minimum of maxShortTimeout and MountTimeout.
func (o *MuxOptions) shortTimeout() time.Duration {
	return min(o.MountTimeout, maxShortTimeout)
}

// send sends a request for a list to the mount in a separate goroutine, so that mounts are
// called concurrently and a mount that ignores its context does not delay the others. It
// returns a function that waits for the outcome, for a limited time unless the mount is a Mux,
// which limits the time for its own mounts.
func (mt *mount) send(ctx context.Context, req *Request) (wait func() (Result, error)) {
	cancel := func() {}
	limit := mt.timeout()
	if mt.child == nil {
		ctx, cancel = context.WithTimeoutCause(ctx, limit, &TimeoutError{req.Method, limit})
	}
	type outcome struct {
		res Result
		err error
	}
	answer := make(chan outcome, 1)
	go func() {
		res, err := serveSafely(ctx, mt.serve, req, mt.parent.opts.Logger)
		answer <- outcome{res, err}
	}()
	return func() (Result, error) {
		defer cancel()
		var o outcome
		select {
		case o = <-answer:
		case <-ctx.Done():
			select {
			case o = <-answer: // it came in time, while the answer of another mount was awaited
			default:
				o.err = ctx.Err()
			}
		}
		if err := ctx.Err(); err == nil || !errors.Is(o.err, err) {
			mt.setHung(time.Time{})
			return o.res, o.err
		}
		err := context.Cause(ctx)
		if _, timedOut := errors.AsType[*TimeoutError](err); timedOut && limit == mt.parent.opts.MountTimeout {
			mt.setHung(time.Now())
		}
		return nil, err
	}
}

// timeout returns how long a list waits for the mount. A mount that hangs delays one list a
// minute by the whole MountTimeout, and the others by the short timeout.
func (mt *mount) timeout() time.Duration {
	mt.mu.Lock()
	defer mt.mu.Unlock()
	if time.Since(mt.hung) < time.Minute {
		return mt.parent.opts.shortTimeout()
	}
	return mt.parent.opts.MountTimeout
}

// setHung sets when a list waited in vain.
func (mt *mount) setHung(at time.Time) {
	mt.mu.Lock()
	defer mt.mu.Unlock()
	mt.hung = at
}

// serveSealed is the innermost handler of a mount: it seals the states and the tasks of the
// mounted server. It is inside the middleware of the mount, because middleware can have states
// and tasks of the mux itself.
func (mt *mount) serveSealed(ctx context.Context, req *Request) (Result, error) {
	outer := req.outer
	if outer == nil { // not about one item, or made by middleware
		outer = req
	}
	inner, err := mt.openState(ctx, outer, req)
	if err != nil {
		return nil, err
	}
	res, err := mt.handler.ServeMCP(contextWithRequest(ctx, inner), inner)
	if err != nil || res == nil {
		return res, err
	}
	if res.base().ResultType == tasking.ResultTask && !strings.HasPrefix(req.Method, prefixTasks) {
		return mt.createdTask(outer, res)
	}
	return mt.sealState(outer, res)
}

// sealState and openState bind the state of a mounted server to the caller of the mux. The
// mounted server cannot do that, because all callers share its connection. A mounted mux
// binds its states itself.

// sealState encrypts the state of a mounted server with the keys of the mux.
func (mt *mount) sealState(req *Request, res Result) (Result, error) {
	r, ok := res.(*InputRequired)
	if mt.child != nil || !ok || r.RequestState == nil {
		return res, nil
	}
	token, err := mt.parent.sealer.seal(req, &replayState{Mounted: r.RequestState})
	if err != nil {
		return nil, err
	}
	sealed := *r
	sealed.RequestState = &token
	return &sealed, nil
}

// openState returns inner with the original state of the mounted server.
func (mt *mount) openState(ctx context.Context, req, inner *Request) (*Request, error) {
	raw := inner.params.requestState()
	if mt.child != nil || raw == nil {
		return inner, nil
	}
	state, err := mt.parent.sealer.open(ctx, req, jsonscan.Text(raw))
	if err != nil {
		return nil, err
	}
	params := []byte{'{'}
	if state.Mounted != nil {
		params = append(jsonscan.AppendKey(params, "requestState"), mustMarshal(*state.Mounted)...)
	}
	opened := inner.Clone()
	return opened, opened.setParams(jsonscan.AppendMembers(params, inner.Params(), "requestState"))
}

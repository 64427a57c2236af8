// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/uritemplate"
)

// A muxSubscription is a subscription at a mux, including those at its mounts.
type muxSubscription struct {
	subscriber

	registry *registry
	accepted SubscriptionFilter
	listener *listener
	mounts   *mountListeners
}

// subscribe adds a listener, which receives all subsequent changes.
func (g *registry) subscribe(ctx context.Context, req *Request) (*muxSubscription, error) {
	var p ListenParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if err := p.Notifications.check(g.opts.maxSubscriptions); err != nil {
		return nil, err
	}
	watched, err := g.watchedTasks(ctx, req, &p.Notifications)
	if err != nil {
		return nil, err
	}
	l := newListener(req.Principal)
	if err := g.hub.add(l); err != nil {
		return nil, err
	}
	accepted, canonical, err := g.accept(ctx, req, &p.Notifications)
	if err != nil {
		g.hub.remove(l)
		return nil, err
	}
	g.hub.cover(l, &accepted, canonical)
	g.bus.join(ctx)
	mounts := newMountListeners(g, req, accepted, l, watched)
	accepted.ResourceSubscriptions = mounts.start(ctx)
	accepted.Extra = mounts.acceptedTasks()
	return &muxSubscription{newSubscriber(req), g, accepted, l, mounts}, nil
}

func (s *muxSubscription) close() {
	s.mounts.stop()
	s.registry.hub.remove(s.listener)
	s.registry.bus.removeListener()
}

// accept returns the part of a filter that this server supports, in the spelling of the
// caller: the lists whose changes it announces, and the resources that the caller may
// subscribe to. canonical holds the URIs that differ from the canonical form, by that form.
func (g *registry) accept(ctx context.Context, req *Request, f *SubscriptionFilter) (accepted SubscriptionFilter, canonical spellings, err error) {
	caps := g.capabilities()
	accepted = caps.announcedLists(*f)
	if caps.Resources == nil || !caps.Resources.Subscribe {
		return accepted, nil, nil
	}
	checks := subscribeChecks{registry: g, req: req}
	defer checks.stop()
	for _, form := range f.ResourceSubscriptions {
		if ctx.Err() != nil {
			return accepted, nil, context.Cause(ctx)
		}
		uris := req.spelled.all(form)
		t := g.subscribable(form)
		if !wasAccepted(req, uris) && !checks.allow(ctx, t) {
			continue
		}
		accepted.ResourceSubscriptions = append(accepted.ResourceSubscriptions, uris...)
		for _, uri := range uris {
			if form := t.canonical(); form != uri {
				if canonical == nil {
					canonical = spellings{}
				}
				canonical[form] = append(canonical[form], uri)
			}
		}
	}
	return accepted, canonical, nil
}

// wasAccepted reports whether an earlier subscription of the sender accepted any of the
// spellings of a URI.
func wasAccepted(req *Request, uris []string) bool {
	return slices.ContainsFunc(uris, func(uri string) bool {
		_, found := slices.BinarySearch(req.sharedCall().accepted, uri)
		return found
	})
}

// sendVisible sends the pending changes. A resource below a subscribed directory may be
// registered separately, with other permissions. If the caller may not subscribe to it, or
// it no longer exists, an update of the directory is sent instead.
func (s *muxSubscription) sendVisible(ctx context.Context) error {
	checks := subscribeChecks{registry: s.registry, req: s.req}
	defer checks.stop()
	visible := s.listener.drain()
	for i, c := range visible {
		if covering := s.listener.covering(c); covering != c && !checks.allow(ctx, s.registry.subscribable(uritemplate.Normal(c.URI))) {
			visible[i] = covering
		}
	}
	slices.SortFunc(visible, compareChanges)
	return s.notify(ctx, slices.Compact(visible))
}

// A subscribable is the resource with a URI.
type subscribable struct {
	uri     string // in normal form
	entry   *entry // nil if there is none in this mux
	values  uritemplate.Values
	mounted bool // it belongs to a mounted server
}

func (g *registry) subscribable(uri string) subscribable {
	s := g.load()
	t := subscribable{uri: uri}
	if t.entry, t.values = s.resource(uri); t.entry == nil {
		t.mounted = s.mountOf("resource", uri) != nil
	}
	return t
}

// canonical returns the URI as its template writes it, which is how its changes are published.
func (t *subscribable) canonical() string {
	if t.entry == nil || t.entry.template == nil {
		return t.uri
	}
	return t.entry.template.Rebuild(t.values)
}

// Limits on the work of deciding which resources the sender of one subscription may be
// notified of. The middleware of [Mux.Use] counts it as one request: it cannot limit the runs
// of handlers for it.
const (
	maxSubscribeReads = 100              // resources that are read because they have no [Resource.Subscribe]
	maxSubscribeRuns  = 16               // runs of one handler at a time, for all subscriptions
	maxSubscribeTime  = 10 * time.Second // for all of the runs
)

// subscribeChecks decide which resources the sender of a subscription may be notified of. A
// subscription needs the permissions of reading, so a handler that checks its caller is
// enough: the mux reads the resource as the caller and discards the content. If that is too
// expensive, [Resource].Subscribe decides instead.
type subscribeChecks struct {
	registry *registry
	req      *Request
	ctx      context.Context //nolint:containedctx // it limits the time for all checks; nil before the first
	cancel   context.CancelFunc
	reads    int
	warned   bool
}

// stop releases the resources of c.
func (c *subscribeChecks) stop() {
	if c.cancel != nil {
		c.cancel()
	}
}

// allow reports whether the sender may be notified of updates of a resource. A mounted server
// decides about its own resources.
func (c *subscribeChecks) allow(ctx context.Context, t subscribable) bool {
	if t.entry == nil {
		return t.mounted
	}
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithTimeoutCause(ctx, maxSubscribeTime, &TimeoutError{c.req.Method, maxSubscribeTime})
	}
	method := MethodReadResource
	if t.entry.resource != nil && t.entry.resource.Subscribe != nil {
		method = MethodSubscribe
	} else if c.reads++; c.reads > maxSubscribeReads {
		c.warn(t, "reads", maxSubscribeReads)
		return false
	}
	select {
	case t.entry.checking <- struct{}{}:
		defer func() { <-t.entry.checking }()
	case <-c.ctx.Done():
	}
	if c.ctx.Err() != nil {
		c.warn(t, "time", maxSubscribeTime)
		return false
	}
	inner := c.req.derive(method, mustMarshal(&ReadResourceParams{URI: t.uri}))
	inner.ID, inner.path = c.req.ID, t.values
	res, err := serve(c.ctx, t.entry.handler, inner, nil, c.registry.opts.Logger)
	_, asks := res.(*InputRequired) // subscriptions cannot ask the user
	return err == nil && !asks
}

// warn logs, once for each subscription, that a resource is left out because a limit is
// reached.
func (c *subscribeChecks) warn(t subscribable, limit string, value any) {
	if _, late := context.Cause(c.ctx).(*TimeoutError); c.warned || c.ctx.Err() != nil && !late { //nolint:errorlint // a cause is not wrapped
		return
	}
	c.warned = true
	c.registry.opts.Logger.WarnContext(c.ctx, "mcp: a subscription leaves out resources, because deciding who may subscribe to them runs their handlers too long or too often",
		"resource", t.entry.name, "registered", t.entry.site, limit, value, "remedy", "set Resource.Subscribe, or make it faster")
}

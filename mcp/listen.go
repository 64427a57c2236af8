// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-psi/psi/internal/jsonscan"
)

// listen serves subscriptions/listen: it acknowledges what it can tell of, then
// tells, until the client or the transport ends it. Its frame is small: thousands of
// goroutines may wait in it.
func (g *registry) listen(ctx context.Context, req *Request) (Result, error) {
	s, err := g.subscribe(ctx, req)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.acknowledge(ctx); err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			s.tellRest(ctx)
			return s.ended(ctx)
		case <-s.listener.wake:
			if err := s.woken(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// subscribe makes a subscription that hears of changes from now on.
func (g *registry) subscribe(ctx context.Context, req *Request) (*subscription, error) {
	var p ListenParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if err := p.Notifications.check(g.opts.MaxSubscriptions); err != nil {
		return nil, err
	}
	accepted := g.accept(ctx, req, &p.Notifications)
	s := newSubscription(req, accepted)
	s.registry = g
	if err := g.hub.add(&s.listener); err != nil {
		return nil, err
	}
	if len(g.load().mounts) > 0 {
		s.accepted.ResourceSubscriptions = s.mountListeners().begin(ctx, s.accepted.ResourceSubscriptions)
	}
	return s, nil
}

func (s *subscription) close() {
	if s.mounts != nil {
		s.mounts.stop()
	}
	s.registry.hub.remove(&s.listener)
}

// mountListeners are made when there are mounts to listen to.
func (s *subscription) mountListeners() *mountListeners {
	if s.mounts == nil {
		filter := s.accepted
		s.mounts = &mountListeners{registry: s.registry, req: s.req, filter: &filter, listener: &s.listener}
	}
	return s.mounts
}

func (s *subscription) acknowledge(ctx context.Context) error {
	accepted := mustMarshal(&s.accepted)
	params := append(make([]byte, 0, len(accepted)+2*labelled), `{"notifications":`...)
	return s.send(ctx, NotificationAcknowledged, append(append(params, accepted...), ','))
}

// woken tells what has changed.
func (s *subscription) woken(ctx context.Context) error {
	changes, uris := s.listener.take()
	if changes&mountsChanged != 0 {
		s.mountListeners().refresh(ctx)
	}
	return s.tell(ctx, changes, uris)
}

// accept is the part of a filter that this server can serve: types that it
// offers, URIs that it knows.
func (g *registry) accept(ctx context.Context, req *Request, f *SubscriptionFilter) SubscriptionFilter {
	s := g.load()
	caps := *s.capabilities
	s.addMounted(ctx, func() *Request { return req.derive(MethodDiscover, nil) }, &caps)
	accepted := SubscriptionFilter{
		ToolsListChanged:     f.ToolsListChanged && caps.tellsOf(toolsChanged),
		PromptsListChanged:   f.PromptsListChanged && caps.tellsOf(promptsChanged),
		ResourcesListChanged: f.ResourcesListChanged && caps.tellsOf(resourcesChanged),
	}
	if caps.Resources == nil || !caps.Resources.Subscribe {
		return accepted
	}
	for _, uri := range f.ResourceSubscriptions {
		if wasAccepted(ctx, req, uri) || g.maySubscribe(ctx, req, uri) {
			accepted.ResourceSubscriptions = append(accepted.ResourceSubscriptions, uri)
		}
	}
	return accepted
}

// accepted are URIs, sorted, whose updates the listener of a call was told of until now:
// a session that subscribes to one more is not to have all others read again.
type accepted struct {
	call *call
	uris []string
}

type acceptedKey struct{}

// wasAccepted does not hold for what is derived from the listener's request: the URIs of
// a mounted server are others.
func wasAccepted(ctx context.Context, req *Request, uri string) bool {
	before, _ := ctx.Value(acceptedKey{}).(*accepted)
	if before == nil || before.call != req.call {
		return false
	}
	_, found := slices.BinarySearch(before.uris, uri)
	return found
}

// subscription writes to one listener.
type subscription struct {
	req      *Request
	accepted SubscriptionFilter
	listener listener
	registry *registry       // of a mux; nil if it is of none
	mounts   *mountListeners // of a mux, nil as long as it has none
}

func newSubscription(req *Request, accepted SubscriptionFilter) *subscription {
	s := &subscription{req: req, accepted: accepted}
	s.listener.init(req.Principal, &s.accepted)
	return s
}

// ended is the outcome of a subscription whose context is done: a result, if it was
// not the listener who ended it.
func (s *subscription) ended(ctx context.Context) (Result, error) {
	if cause := context.Cause(ctx); !errors.Is(cause, ErrClosed) {
		return nil, cause
	}
	res := new(ListenResult)
	res.Meta.Set(MetaSubscriptionID, s.req.ID)
	return res, nil
}

// labelled is room for params of nothing but a label.
const labelled = 96

// send sends a notification whose params lack only the label of what belongs to the
// subscription, and their end. There may be thousands of subscriptions: no tree is
// built for it.
func (s *subscription) send(ctx context.Context, method string, params []byte) error {
	params = append(params, `"_meta":{"`+MetaSubscriptionID+`":`...)
	params = append(params, s.req.ID.String()...)
	return s.req.call.notify(ctx, method, append(params, "}}"...))
}

var changeNotifications = []struct {
	change change
	method string
}{
	{toolsChanged, NotificationToolsListChanged},
	{promptsChanged, NotificationPromptsListChanged},
	{resourcesChanged, NotificationResourcesListChanged},
}

// tellsOf reports whether a server with these capabilities tells of a change.
func (c *ServerCapabilities) tellsOf(ch change) bool {
	switch ch {
	case toolsChanged:
		return c.Tools != nil && c.Tools.ListChanged
	case promptsChanged:
		return c.Prompts != nil && c.Prompts.ListChanged
	case resourcesChanged:
		return c.Resources != nil && c.Resources.ListChanged
	}
	return false
}

func (s *subscription) tell(ctx context.Context, changes change, uris []string) error {
	for i := range changeNotifications {
		n := &changeNotifications[i] // a copy would make the frame larger
		if changes&n.change == 0 {
			continue
		}
		if err := s.send(ctx, n.method, append(make([]byte, 0, labelled), '{')); err != nil {
			return err
		}
	}
	for _, uri := range s.visible(ctx, uris) {
		params := append(jsonscan.AppendString([]byte(`{"uri":`), uri), ',')
		if err := s.send(ctx, NotificationResourceUpdated, params); err != nil {
			return err
		}
	}
	return nil
}

// visible returns the updates to tell of. What lies below a directory that was
// subscribed to can have a registration of its own, with other permissions: where the
// listener may not subscribe to it, or it is gone, the directory stands for it.
func (s *subscription) visible(ctx context.Context, uris []string) []string {
	if s.registry == nil {
		return uris
	}
	for i, uri := range uris {
		if subscribed, ok := s.listener.covering(uri); ok && subscribed != uri && !s.registry.maySubscribe(ctx, s.req, uri) {
			uris[i] = subscribed
		}
	}
	slices.Sort(uris)
	return slices.Compact(uris)
}

// tellRest tells what came at the same time as the end: whoever takes this
// subscription's place does not hear of it. A client that cancelled wants nothing
// more.
func (s *subscription) tellRest(ctx context.Context) {
	if _, cancelled := errors.AsType[*CancelError](context.Cause(ctx)); cancelled {
		return
	}
	changes, uris := s.listener.take()
	_ = s.tell(context.WithoutCancel(ctx), changes, uris) // who is gone needs nothing
}

// derive is another request of the same caller, with its own stream of
// notifications.
func (r *Request) derive(method string, params json.RawMessage) *Request {
	d := r.Clone()
	d.call = &call{session: r.call.session}
	d.Method, d.ID = method, ID{}
	if err := d.setParams(params); err != nil {
		panic("mcp: params made here are malformed: " + err.Error())
	}
	return d
}

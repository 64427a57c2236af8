// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"context"
	"slices"
	"sync"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// Listen sends messages that belong to no request to out: list changes, updates of the
// resources that the session subscribed to, and pings. It subscribes to the changes at the
// handler, as a client of the newest revision does, until ctx or the session ends. If ready
// is not nil, Listen calls it once no later change can be missed. No change is sent before
// ready has returned.
//
// The request that the handler receives has the given origin. Changes that the origin may
// not subscribe to are omitted.
//
// A second Listen may start before the first has returned. Both then send the changes;
// [mcp.Session.Notify] and subscriptions use the one started last.
func (s *Session) Listen(ctx context.Context, from Origin, out Sender, ready func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(s.ctx, func() { cancel(mcp.ErrClosed) })()
	f := &feed{session: s, ctx: ctx, from: from, out: out, replacing: make(chan struct{}, 1)}
	defer f.running.Wait()
	defer cancel(nil)
	f.replacing <- struct{}{}
	s.attach(f)
	defer s.detach(f)
	if s.server.KeepAlive > 0 {
		f.running.Go(func() { s.keepAlive(ctx) })
	}
	f.current = f.newRequest(nil)
	f.current.ready = ready
	<-f.replacing
	if len(s.subscribedURIs()) > 0 {
		f.running.Go(func() { _ = s.resubscribe(ctx) }) // to the resources that the first request leaves out
	}
	f.current.run()
	<-ctx.Done()              // the request may be replaced, or the handler may have no changes
	f.replacing <- struct{}{} // a replacement in progress ends with ctx
}

// feed is one call of [Session.Listen]. The goroutine of that call serves the first request
// to the handler. When the session's subscriptions change, a new request with its own
// goroutine replaces the current one. A mutex held until the handler responds was rejected,
// and one request for each URI: that would be simpler, because no request would be replaced, but
// each would keep a goroutine, 11.6 KB instead of 0.12 KB for a URI, and count against the
// limit of the caller.
type feed struct {
	session *Session
	ctx     context.Context //nolint:containedctx // of Listen
	from    Origin
	out     Sender
	running sync.WaitGroup

	replacing chan struct{} // capacity 1; full while a goroutine uses current
	current   *feedRequest
}

// newRequest returns a request for the session's current subscriptions. The handler does
// not check the URIs in acceptedBefore again.
func (f *feed) newRequest(acceptedBefore []string) *feedRequest {
	filter := mcp.SubscriptionFilter{
		ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true,
		ResourceSubscriptions: f.session.subscribedURIs(),
	}
	r := &feedRequest{feed: f, req: f.session.listenRequest(f.from, filter), responded: make(chan struct{}), ended: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(f.ctx)
	core.SetAccepted(r.req, acceptedBefore)
	return r
}

// replaceLocked replaces the current request with one for the session's current
// subscriptions. The current request continues until the handler has acknowledged the new
// one, so that there is no gap. If the handler refuses the new request or ctx ends, the
// current one is kept.
//
// The handler may leave out resources because it decides about a limited number of them for
// each request. replaceLocked therefore repeats, as long as more are accepted.
func (f *feed) replaceLocked(ctx context.Context) error {
	if err := f.current.awaitResponse(ctx); err != nil {
		return err
	}
	for before := -1; ; {
		accepted := f.current.acceptedURIs()
		if len(accepted) <= before || slices.Equal(accepted, f.session.subscribedURIs()) {
			return nil
		}
		before = len(accepted)
		if err := f.replaceOnceLocked(ctx, accepted); err != nil {
			return err
		}
	}
}

// replaceOnceLocked replaces the current request with one in which the URIs in accepted are
// not checked again.
func (f *feed) replaceOnceLocked(ctx context.Context, accepted []string) error {
	next := f.newRequest(accepted)
	f.running.Go(next.run)
	err := next.awaitResponse(ctx)
	if err == nil {
		err = next.err
	}
	if err != nil {
		next.stop()
		return err
	}
	f.current.stop()
	f.current = next
	return nil
}

// resubscribe makes the session's standalone stream, if there is one, send the updates of
// the resources that the session is currently subscribed to. The client receives every
// update that it causes after resubscribe has returned.
func (s *Session) resubscribe(ctx context.Context) error {
	s.mu.Lock()
	f := s.feed
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	select {
	case f.replacing <- struct{}{}:
		defer func() { <-f.replacing }()
		return f.replaceLocked(ctx)
	case <-f.ctx.Done():
		return nil // the next Listen subscribes to everything
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Missed sends a notification for everything whose changes the session receives, using the
// Listen started last. It is for clients that reconnect and may have missed changes.
func (s *Session) Missed(ctx context.Context) {
	s.mu.Lock()
	f, changes := s.feed, core.ChangesIn(&s.accepted)
	s.mu.Unlock()
	if f == nil {
		return
	}
	for _, c := range changes {
		_ = sendChange(ctx, f.out, c.Method, c.URI) // if it fails, the client is gone
	}
}

// sendChange sends a change notification. Only updates of resources have params.
func sendChange(ctx context.Context, out Sender, method, uri string) error {
	var params []byte
	if method == mcp.NotificationResourceUpdated {
		params = strictjson.MustMarshal(&mcp.ResourceUpdatedParams{URI: uri})
	}
	return out.Send(ctx, transport.AppendNotification(nil, method, params))
}

func (s *Session) attach(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feed = f
}

func (s *Session) detach(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feed == f {
		s.feed = nil
	}
}

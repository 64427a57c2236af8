// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyserver

import (
	"context"
	"slices"
	"sync"

	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// Listen sends messages that belong to no request to out: changes of lists, updates of
// the resources that the session subscribed to, and pings. It subscribes to the changes
// at the handler, as a client of the newest revision does, until ctx or the session ends.
// It calls ready, unless that is nil, once no change is missed from then on; no change is
// sent before ready has returned.
//
// The request that the handler receives has the given origin. What that may not subscribe
// to is left out.
//
// A second Listen may start before the first has returned. Both then send the changes;
// [mcp.Session.Notify] and subscriptions use the last one started.
func (s *Session) Listen(ctx context.Context, from serving.Origin, out serving.Sender, ready func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(s.ctx, func() { cancel(mcp.ErrClosed) })()
	var pinging sync.WaitGroup
	defer pinging.Wait()
	defer cancel(nil)
	f := &feed{
		session: s, from: from, out: out, ready: ready,
		events: make(chan func()), commands: make(chan func(context.Context)), done: make(chan struct{}),
	}
	s.attach(f)
	defer s.detach(f)
	if s.opts.KeepAlive > 0 {
		pinging.Go(func() { s.keepAlive(ctx) })
	}
	f.run(ctx)
}

// feed is one call of [Session.Listen]. It runs on the goroutine of that call, to which
// other goroutines send functions to run there. Each request to the handler has a
// goroutine of its own; when the session's subscriptions change, a new request replaces
// the current one.
type feed struct {
	session  *Session
	from     serving.Origin
	out      serving.Sender
	events   chan func()                // from the goroutines of requests
	commands chan func(context.Context) // from other goroutines; they get the context of Listen
	done     chan struct{}              // closed when commands are no longer received

	// Of the goroutine of Listen.
	ready   func() // nil once it was called
	current *feedRequest
}

func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	f.current = f.start(ctx, nil)
	f.await(f.current, nil)
	for {
		select {
		case <-ctx.Done():
			f.stop(f.current)
			return
		case event := <-f.events:
			event()
		case command := <-f.commands:
			command(ctx)
		}
	}
}

// start sends a request for the subscriptions that the session has now to the handler,
// which does not check again those that it has accepted before.
func (f *feed) start(ctx context.Context, acceptedBefore []string) *feedRequest {
	filter := mcp.SubscriptionFilter{
		ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true,
		ResourceSubscriptions: f.session.subscribedURIs(),
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &feedRequest{feed: f, req: f.session.listenRequest(f.from, filter), cancel: cancel, done: make(chan struct{})}
	core.SetAccepted(r.req, acceptedBefore)
	go r.run(ctx)
	return r
}

// await runs events until the handler has responded to a request.
func (f *feed) await(r *feedRequest, abandoned <-chan struct{}) {
	for !r.responded {
		select {
		case event := <-f.events:
			event()
		case <-abandoned:
			return
		}
	}
}

// stop cancels a request and runs events until its goroutine has ended.
func (f *feed) stop(r *feedRequest) {
	r.cancel()
	for {
		select {
		case event := <-f.events:
			event()
		case <-r.done:
			return
		}
	}
}

// replace replaces the current request with one for the subscriptions that the session
// has now. The current request goes on until the handler has acknowledged the new one, so
// that there is no gap. It stays if the handler refuses the new one, or if the waiting
// caller gives up.
func (f *feed) replace(ctx, caller context.Context) error {
	if slices.Equal(f.current.accepted, f.session.subscribedURIs()) {
		return nil
	}
	next := f.start(ctx, f.current.accepted)
	f.await(next, caller.Done())
	err := next.err
	if !next.responded {
		err = context.Cause(caller)
	}
	if err != nil {
		f.stop(next)
		return err
	}
	f.stop(f.current)
	f.current = next
	return nil
}

// resubscribe makes the session's own stream, if there is one, send the updates of the
// resources that the session is subscribed to now. A client receives every update that
// it causes after resubscribe has returned.
func (s *Session) resubscribe(ctx context.Context) error {
	s.mu.Lock()
	f := s.feed
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	reply := make(chan error, 1)
	select {
	case f.commands <- func(feedCtx context.Context) { reply <- f.replace(feedCtx, ctx) }:
		return <-reply
	case <-f.done:
		return nil // the next Listen subscribes to all
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Missed sends a notification about everything that the session receives changes of,
// through the last Listen started: for a client that comes back and may have missed some.
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

// sendChange sends the notification of a change, which has params only if it is the
// update of a resource.
func sendChange(ctx context.Context, out serving.Sender, method, uri string) error {
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

// setAccepted notes what the handler sends changes of.
func (s *Session) setAccepted(f mcp.SubscriptionFilter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted = f
}

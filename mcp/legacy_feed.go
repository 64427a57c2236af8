// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"slices"

	"github.com/go-psi/psi/internal/digest"
)

// feedRequest is a subscriptions/listen request to the handler, which is sent again if it
// ends early.
type feedRequest struct {
	feed   *feed
	req    *Request
	cancel context.CancelFunc
	done   chan struct{} // closed when its goroutine ends

	// Of the goroutine of Listen.
	responded bool     // the handler has acknowledged or refused it
	err       error    // if the handler refused it
	accepted  []string // the URIs that the handler has accepted, sorted
}

var feedID = StringID("psi-listen")

// listenRequest returns a subscriptions/listen request of the session.
func (l *Legacy) listenRequest(from Origin, f SubscriptionFilter) *Request {
	req, err := NewRequest(MethodListen, &ListenParams{Notifications: f})
	if err != nil {
		panic("mcp: " + err.Error())
	}
	req.ID = feedID
	from.mark(req)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fillIn(req)
	return req
}

// run has the handler serve the request until ctx is done.
func (r *feedRequest) run(ctx context.Context) {
	defer close(r.done)
	l := r.feed.legacy
	notifier := &changeNotifier{
		acknowledged: r.acknowledge,
		changed:      func(ctx context.Context, c Change) error { return sendLegacyChange(ctx, r.feed.out, c) },
	}
	listenAgain(ctx, func(again bool) error {
		if again {
			r.req.call.accepted = nil
		}
		_, err := Serve(ctx, l.handler, r.req, notifier, l.opts.Logger)
		refused := err != nil && ctx.Err() == nil && CodeOf(err) != CodeMethodNotFound
		if refused && !again {
			l.opts.Logger.Warn("mcp: the server cannot tell of changes", "session", digest.Session(l.opts.ID), "error", err)
		}
		r.onFeed(func() {
			if refused && !r.responded {
				r.err = err
			}
			r.respond(ctx)
		})
		return err
	})
}

// acknowledge notes what the handler has accepted. If the handler has responded before,
// it has ended the subscription since, and anything may have changed.
func (r *feedRequest) acknowledge(ctx context.Context, accepted SubscriptionFilter) {
	slices.Sort(accepted.ResourceSubscriptions)
	l := r.feed.legacy
	again := false
	r.onFeed(func() {
		again = r.responded
		r.accepted = accepted.ResourceSubscriptions
		l.setAccepted(accepted)
		r.respond(ctx)
	})
	if again {
		l.Missed(ctx)
	}
}

// respond notes that the handler has responded, on the goroutine of Listen. A panic in
// ready is logged like one in the handler: ready may write to the client.
func (r *feedRequest) respond(ctx context.Context) {
	r.responded = true
	f := r.feed
	if f.ready == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			_ = panicked(ctx, r.req, v, f.legacy.opts.Logger)
		}
	}()
	ready := f.ready
	f.ready = nil
	ready()
}

// onFeed runs fn on the goroutine of Listen, and returns when it has returned.
func (r *feedRequest) onFeed(fn func()) {
	returned := make(chan struct{})
	r.feed.events <- func() {
		fn()
		close(returned)
	}
	<-returned
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyserver

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/go-psi/psi/internal/digest"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// feedRequest is a subscriptions/listen request to the handler, which is sent again if it
// ends early.
type feedRequest struct {
	feed   *feed
	req    *mcp.Request
	cancel context.CancelFunc
	done   chan struct{} // closed when its goroutine ends

	// Of the goroutine of Listen.
	responded bool     // the handler has acknowledged or refused it
	err       error    // if the handler refused it
	accepted  []string // the URIs that the handler has accepted, sorted
}

var feedID = mcp.StringID("psi-listen")

// listenRequest returns a subscriptions/listen request of the session.
func (s *Session) listenRequest(from serving.Origin, f mcp.SubscriptionFilter) *mcp.Request {
	req, err := mcp.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: f})
	if err != nil {
		panic("mcp: " + err.Error())
	}
	req.ID, req.Principal, req.Header = feedID, from.Principal, from.Header
	s.mu.Lock()
	defer s.mu.Unlock()
	s.describeLocked(req)
	return req
}

// run has the handler serve the request until ctx is done.
func (r *feedRequest) run(ctx context.Context) {
	defer close(r.done)
	s := r.feed.session
	core.ListenAgain(ctx, func(again bool) error {
		if again {
			core.SetAccepted(r.req, nil)
		}
		_, err := core.Serve(ctx, s.handler, r.req, r, s.opts.Logger)
		refused := err != nil && ctx.Err() == nil && mcp.CodeOf(err) != mcp.CodeMethodNotFound
		if refused && !again {
			s.opts.Logger.Warn("mcp: the server cannot tell of changes", "session", digest.Session(s.opts.ID), "error", err)
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

// Notify implements [serving.Notifier]. The older revisions have no subscription ids.
func (r *feedRequest) Notify(ctx context.Context, method string, params json.RawMessage) error {
	var p mcp.ResourceUpdatedParams
	switch method {
	case mcp.NotificationAcknowledged:
		r.acknowledge(ctx, params)
		return nil
	case mcp.NotificationResourceUpdated:
		if err := strictjson.Unmarshal(params, &p); err != nil {
			return err
		}
	}
	return sendChange(ctx, r.feed.out, method, p.URI)
}

// acknowledge notes what the handler has accepted. If the handler has responded before,
// it has ended the subscription since, and anything may have changed.
func (r *feedRequest) acknowledge(ctx context.Context, params json.RawMessage) {
	var p mcp.AcknowledgedParams
	_ = strictjson.Unmarshal(params, &p) // if it cannot be read, nothing was accepted
	slices.Sort(p.Notifications.ResourceSubscriptions)
	s := r.feed.session
	late := false
	r.onFeed(func() {
		late = r.responded
		r.accepted = p.Notifications.ResourceSubscriptions
		s.setAccepted(p.Notifications)
		r.respond(ctx)
	})
	if late {
		s.Missed(ctx)
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
			_ = core.Panicked(ctx, r.req, v, f.session.opts.Logger)
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// feedRequest is a subscriptions/listen request to the handler. It is sent again if it ends
// early. Its handler sends notifications one at a time.
type feedRequest struct {
	feed      *feed
	req       *mcp.Request
	ctx       context.Context //nolint:containedctx // a request is made in one place and served in another
	cancel    context.CancelFunc
	ready     func()        // called when the handler has responded; may be nil
	responded chan struct{} // closed when the handler has acknowledged or refused it, and ready has returned
	ended     chan struct{} // closed when run returns

	err      error    // why the handler refused it; set before responded is closed
	accepted []string // sorted URIs that the handler has accepted; guarded by session.mu
}

var feedID = mcp.StringID("psi-listen")

// listenRequest returns a subscriptions/listen request of the session.
func (s *Session) listenRequest(from Origin, f mcp.SubscriptionFilter) *mcp.Request {
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

// run makes the handler serve the request until its context is done.
func (r *feedRequest) run() {
	defer close(r.ended)
	core.ListenAgain(r.ctx, r.serve)
}

// serve makes the handler serve the request once.
func (r *feedRequest) serve(again bool) error {
	if again {
		core.SetAccepted(r.req, nil)
	}
	server := r.feed.session.server
	_, err := core.Serve(r.ctx, server.handler, r.req, r, server.Logger)
	r.respond(r.refusal(err, again))
	return err
}

// refusal returns err, the outcome of the request, if the handler refused the request, and
// nil otherwise.
func (r *feedRequest) refusal(err error, again bool) error {
	if err == nil || r.ctx.Err() != nil || mcp.CodeOf(err) == mcp.CodeMethodNotFound {
		return nil //nolint:nilerr // it has ended, or there are no changes
	}
	if s := r.feed.session; !again {
		s.server.Logger.Warn("mcp: the server cannot tell of changes", "session", redact.Session(s.details.ID), "error", err)
	}
	return err
}

// stop cancels the request and waits until run has returned.
func (r *feedRequest) stop() {
	r.cancel()
	<-r.ended
}

// awaitResponse waits until the handler has responded. It returns an error if ctx ends
// first.
func (r *feedRequest) awaitResponse(ctx context.Context) error {
	select {
	case <-r.responded:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Notify sends a change that the handler announces. The older revisions have no subscription ids.
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

// acknowledge records what the handler has accepted. If the handler had already responded,
// the subscription was interrupted in the meantime and anything may have changed.
func (r *feedRequest) acknowledge(ctx context.Context, params json.RawMessage) {
	var p mcp.AcknowledgedParams
	_ = strictjson.Unmarshal(params, &p) // if params cannot be read, nothing was accepted
	slices.Sort(p.Notifications.ResourceSubscriptions)
	r.setAccepted(p.Notifications)
	if isFirst := r.respond(nil); !isFirst {
		r.feed.session.Missed(ctx)
	}
}

// respond records that the handler has responded, and reports whether this is the first
// response. A panic in ready is logged like one in the handler, because ready may write to
// the client.
func (r *feedRequest) respond(err error) (isFirst bool) {
	select {
	case <-r.responded:
		return false
	default:
	}
	defer close(r.responded)
	defer func() {
		if v := recover(); v != nil {
			_ = core.Panicked(r.ctx, r.req, v, r.feed.session.server.Logger)
		}
	}()
	r.err, isFirst = err, true
	if r.ready != nil {
		r.ready()
	}
	return isFirst
}

// setAccepted records the changes that the handler sends.
func (r *feedRequest) setAccepted(f mcp.SubscriptionFilter) {
	s := r.feed.session
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted, r.accepted = f, f.ResourceSubscriptions
}

func (r *feedRequest) acceptedURIs() []string {
	s := r.feed.session
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.accepted
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyhttp

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/internal/endpoint"
)

// This file fails the requests of replicas that were killed. A replica that has sessions
// announces itself to the others every second. The name of a stream has that of the replica
// that writes it: another replica, at which the client resumes the stream, ends it when it
// has not heard from that one for some time.

// aliveTopic is the topic on which replicas announce themselves by their names.
const aliveTopic = "psi/alive"

const (
	aliveInterval = time.Second       // between two announcements
	maxAliveGap   = 2 * aliveInterval // between two that are received, if the topic works
	aliveLifetime = 5 * aliveInterval // of a replica that is not heard from
)

// keepPresence tells other replicas that this one is alive, until ctx is done.
func (ss *sessions) keepPresence(ctx context.Context) {
	for ctx.Err() == nil {
		ss.announceReplica(ctx)
		_ = pause.For(ctx, aliveInterval) // the loop ends with ctx
	}
}

// announceReplica tells other replicas that this one is alive.
func (ss *sessions) announceReplica(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, maxAliveGap)
	defer cancel()
	err := ss.opts.Store.Publish(bounded, aliveTopic, []byte(ss.replica))
	if err != nil && ctx.Err() == nil && ss.events.mayWarn() {
		ss.opts.Logger.WarnContext(ctx, "mcphttp: other replicas may think that this one is gone", "error", err)
	}
}

func (ss *sessions) hearReplica(_ context.Context, name []byte) error {
	ss.events.presence.hear(string(name))
	return nil
}

// presence is which replicas were heard from. It relies on the topic only while this replica
// hears itself: an outage silences all of them. Use newPresence to make one.
type presence struct {
	self string // the name of this replica

	mu    sync.Mutex
	since time.Time            // this replica hears itself since then without a gap
	heard map[string]time.Time // when each replica was last heard from; without those that are gone
}

func newPresence(self string) *presence {
	return &presence{self: self, heard: map[string]time.Time{}}
}

// hear notes that a replica has announced itself.
func (p *presence) hear(replica string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if replica == p.self {
		if now.Sub(p.heard[replica]) > maxAliveGap {
			p.since = now
		}
		maps.DeleteFunc(p.heard, func(_ string, last time.Time) bool { return now.Sub(last) >= aliveLifetime })
	}
	p.heard[replica] = now
}

// isGone reports whether nothing was heard from a replica for long enough, while this one
// heard itself.
func (p *presence) isGone(replica string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return now.Sub(p.heard[p.self]) <= maxAliveGap && now.Sub(p.since) >= aliveLifetime && now.Sub(p.heard[replica]) >= aliveLifetime
}

var errAbandoned = mcp.Errorf(mcp.CodeInternalError, "the replica that served the request is gone; the request may have been executed")

// will returns the response that ends the stream if this replica is killed, empty if the
// stream belongs to no request or to this process alone. It is the first record of the log.
func (st *stream) will() []byte {
	if !st.session.events.shared || st.call == nil {
		return nil
	}
	return st.call.AppendError(nil, errAbandoned)
}

// isAbandoned reports whether the replica that writes a stream is gone.
func (e *eventLog) isAbandoned(stream string) bool {
	owner := ownerOf(stream)
	return owner != "" && e.presence.isGone(owner)
}

// sendWill ends a stream that is abandoned. If its will has been trimmed, the error that ends
// it names no request. The log is left as it is: a client that resumes the stream gets the same.
func (e *eventLog) sendWill(ctx context.Context, session, stream string, out *endpoint.EventWriter) error {
	last, err := e.readWill(ctx, session, stream)
	if err != nil {
		return err
	}
	if len(last) == 0 {
		last = core.AppendError(nil, mcp.ID{}, errAbandoned)
	}
	return out.Send(endpoint.MessageEvent("", last))
}

const (
	endInterval = 2 * time.Second // between two attempts to keep the end of a stream
	endPatience = 2 * time.Minute // of all attempts
)

var errTooLongToKeep = mcp.Errorf(mcp.CodeInternalError, "the response is too long to be kept for a client that resumes the stream; the request was executed")

// keepEnd keeps the last message of a stream, which the store has not taken, in the
// background: at another replica, a client may wait for it.
func (h *Handler) keepEnd(ctx context.Context, st *stream, message []byte) {
	if !h.Requests.Enter() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	stopClosing, stopSession := context.AfterFunc(h.Closing, cancel), context.AfterFunc(st.session.legacy.Context(), cancel)
	go func() {
		defer h.Requests.Leave()
		defer cancel()
		defer stopClosing()
		defer stopSession()
		for pause.For(ctx, endInterval) == nil {
			err := st.keepEnd(ctx, message)
			switch {
			case err == nil:
				return
			case errors.Is(err, errNotKept), errors.Is(err, store.ErrTooLarge):
				message = st.call.AppendError(nil, errTooLongToKeep)
			}
		}
	}()
}

func (st *stream) keepEnd(ctx context.Context, message []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	_, err := st.keepLocked(ctx, recordLast, message)
	return err
}

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
// announces itself to the others every second. The name of a stream contains the name of
// the replica that writes it. If a client resumes the stream at another replica, that
// replica ends the stream once it has not heard from the writing replica for some time.

// aliveTopic is the topic on which replicas announce themselves by name.
const aliveTopic = "psi/alive"

const (
	aliveInterval = time.Second       // between two announcements
	maxAliveGap   = 2 * aliveInterval // between two that are received while the topic works
	aliveLifetime = 5 * aliveInterval // a replica is gone after this time without an announcement
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

func (ss *sessions) receiveAnnouncement(_ context.Context, name []byte) error {
	ss.events.presence.recordAnnouncement(string(name))
	return nil
}

// presence records which replicas have announced themselves. It relies on the topic only
// while this replica receives its own announcements, because an outage silences all
// replicas. Use newPresence to create one.
type presence struct {
	self string // the name of this replica

	mu    sync.Mutex
	since time.Time            // this replica has heard itself without a gap since then
	heard map[string]time.Time // when each replica was last heard from; gone replicas are removed
}

func newPresence(self string) *presence {
	return &presence{self: self, heard: map[string]time.Time{}}
}

// recordAnnouncement records that a replica has announced itself.
func (p *presence) recordAnnouncement(replica string) {
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

// isGone reports whether a replica has been silent for aliveLifetime while this replica
// heard itself.
func (p *presence) isGone(replica string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	return now.Sub(p.heard[p.self]) <= maxAliveGap && now.Sub(p.since) >= aliveLifetime && now.Sub(p.heard[replica]) >= aliveLifetime
}

var errAbandoned = mcp.Errorf(mcp.CodeInternalError, "the replica that served the request is gone; the request may have been executed")

// will returns the response that ends the stream if this replica is killed. It is empty if
// the stream belongs to no request or the store is not shared. It is the first record of the log.
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

// sendWill ends an abandoned stream. If the will has been trimmed, it sends an error that
// names no request. It does not change the log, so a client that resumes the stream again
// receives the same response.
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
	endInterval = 2 * time.Second // between two attempts to store the end of a stream
	endPatience = 2 * time.Minute // for all attempts
)

var errTooLongToKeep = mcp.Errorf(mcp.CodeInternalError, "the response is too long to be kept for a client that resumes the stream; the request was executed")

// keepEnd retries in the background to store the last message of a stream, because a client
// may be waiting for it at another replica.
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

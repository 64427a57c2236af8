// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// This file fails the requests of replicas that were killed. A replica that has sessions
// keeps a value in the store, which expires soon after the replica is gone. The log of a
// stream begins with the name of the replica that writes it; another replica at which the
// client resumes the stream looks for that value.

const (
	presenceInterval = 2 * time.Second  // between two signs of life
	presenceLifetime = 6 * time.Second  // in the store
	presenceGrace    = 6 * time.Second  // after a store was down, in which all replicas show signs of life again
	presenceTimeout  = 10 * time.Second // of one write
)

func presenceKey(replica string) string { return "psi/replica/" + replica }

// keepPresence tells other replicas that this one is alive, until ctx is done.
func (ss *sessions) keepPresence(ctx context.Context) {
	ticker := time.NewTicker(presenceInterval)
	defer ticker.Stop()
	for {
		err := ss.writePresence(ctx)
		ss.events.presence.note(err == nil)
		if err != nil && ctx.Err() == nil && ss.events.mayWarn() {
			ss.opts.Logger.WarnContext(ctx, "mcphttp: other replicas may think that this one is gone", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (ss *sessions) writePresence(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()
	return store.Update(ctx, ss.opts.Store, presenceKey(ss.replica), presenceLifetime, func([]byte) ([]byte, error) { return nil, nil })
}

// presence is how the store has taken the signs of life of this process. A replica of which
// there is none is gone only if the store was up for some time: an outage lets the values of
// all replicas expire. The zero presence is ready to use.
type presence struct {
	mu          sync.Mutex
	since, last time.Time // the first and the last write of those that succeeded without a gap
}

func (p *presence) note(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !ok || now.Sub(p.last) > 2*presenceInterval {
		p.since = now
	}
	if ok {
		p.last = now
	}
}

// isReliable reports whether the store was up for long enough.
func (p *presence) isReliable() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.last) <= 2*presenceInterval && time.Since(p.since) >= presenceGrace
}

// streamOwner is the first record of the stream of a request.
type streamOwner struct {
	Replica string `json:"replica"` // that writes it
	Request mcp.ID `json:"request"`
}

// ownerRecord returns the record for the streamOwner of the stream, nil if the stream has none.
func (st *stream) ownerRecord() []byte {
	if !st.session.events.shared || st.request.IsZero() {
		return nil
	}
	record, err := json.Marshal(&streamOwner{Replica: st.session.events.replica, Request: st.request})
	if err != nil {
		return nil // the stream has no owner then
	}
	return record
}

// ownerOf returns who writes the stream of a request, or nil if that is not known: the log
// may have been trimmed.
func (e *eventLog) ownerOf(ctx context.Context, session string, stream int64) *streamOwner {
	records, err := e.store.Read(ctx, logName(session, stream), 0, 1)
	if err != nil || len(records) == 0 || len(records[0].Data) == 0 || records[0].Data[0] != recordPrime {
		return nil
	}
	o := new(streamOwner)
	if json.Unmarshal(records[0].Data[1:], o) != nil || o.Replica == "" {
		return nil
	}
	return o
}

var errAbandoned = mcp.Errorf(mcp.CodeInternalError, "the replica that served the request is gone; the request may have been executed")

// endIfAbandoned ends a stream with an error if its owner, which may be nil, is gone.
func (e *eventLog) endIfAbandoned(ctx context.Context, session string, stream int64, o *streamOwner) error {
	if o == nil || !e.presence.isReliable() {
		return nil
	}
	_, _, err := e.store.Get(ctx, presenceKey(o.Replica))
	if errors.Is(err, store.ErrNotFound) {
		_, err = e.append(ctx, session, stream, recordLast, core.AppendError(nil, o.Request, errAbandoned))
	}
	return err
}

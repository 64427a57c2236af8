// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// This file fails the requests of replicas that were killed. A replica that has sessions
// keeps a value in the store, which expires soon after the replica is gone. The log of a
// stream begins with the name of the replica that writes it; another replica at which the
// client resumes the stream looks for that value.

const (
	presenceInterval = 2 * time.Second // between two signs of life, and between two looks
	presenceLifetime = 6 * time.Second // in the store
	presenceGrace    = 4 * time.Second // a store that was down has lost the values of all replicas
)

func presenceKey(replica string) string { return "psi/replica/" + replica }

// keepPresence tells other replicas that this one is alive, until ctx is done.
func (ss *sessions) keepPresence(ctx context.Context) {
	ticker := time.NewTicker(presenceInterval)
	defer ticker.Stop()
	for {
		err := store.Update(ctx, ss.opts.Store, presenceKey(ss.replica), presenceLifetime, func([]byte) ([]byte, error) { return nil, nil })
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

// streamOwner is the first record of a stream, and what another replica knows of the one
// that writes it.
type streamOwner struct {
	Replica string `json:"replica"`
	Request mcp.ID `json:"request"`

	checked      time.Time // when it was last looked for
	missingSince time.Time // zero if it was there
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
	now := time.Now()
	if o == nil || now.Sub(o.checked) < presenceInterval {
		return nil
	}
	o.checked = now
	_, _, err := e.store.Get(ctx, presenceKey(o.Replica))
	switch {
	case !errors.Is(err, store.ErrNotFound):
		o.missingSince = time.Time{}
	case o.missingSince.IsZero():
		o.missingSince = now
	case now.Sub(o.missingSince) >= presenceGrace:
		_, err := e.append(ctx, session, stream, recordLast, core.AppendError(nil, o.Request, errAbandoned))
		return err
	}
	return nil
}

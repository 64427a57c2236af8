// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"context"
	"sync"

	"github.com/go-psi/psi/mcp"
)

// InFlight is the table of the requests of a connection or session that are being served. It
// is safe for concurrent use.
type InFlight struct {
	limit int // of requests

	mu    sync.Mutex
	calls map[mcp.ID]*Call // by canonical id
	bytes int              // of their params
	grown bool             // calls has grown; an empty map keeps its memory
}

// NewInFlight returns an empty table for one connection or session.
func (s *Server) NewInFlight() *InFlight { return &InFlight{limit: s.MaxInFlight} }

// maxInFlightBytes limits the params of the requests of a connection or session that are
// served concurrently, in bytes. It is the size of the longest message of stdio; over HTTP,
// it is four times that.
const maxInFlightBytes = 64 << 20

// smallTable is the number of calls up to which an empty table keeps its map.
const smallTable = 8

// add adds a request, whose context can be cancelled from then on. It returns an error if the
// id is in flight, or too much is. A single request may have any size. A request is added
// before any later message is read; otherwise a busy server could read a cancellation before
// its request.
func (t *InFlight) add(c *Call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, size, count := c.id.Canonical(), len(c.req.Params()), len(t.calls)
	switch {
	case t.calls[id] != nil:
		return mcp.Errorf(mcp.CodeInvalidRequest, "the id %s belongs to a request that is not answered yet", c.id)
	case count >= t.limit:
		return mcp.Errorf(mcp.CodeInternalError, "%d requests are being served, which is the limit; send this one again later", t.limit)
	case count > 0 && t.bytes+size > maxInFlightBytes:
		return mcp.Errorf(mcp.CodeInternalError, "requests with %d bytes are being served, and this one has %d more; the limit is %d; send it again later", t.bytes, size, maxInFlightBytes)
	}
	c.ctx, c.cancel = context.WithCancelCause(c.ctx)
	c.inFlight, c.size = t, size
	if t.calls == nil {
		t.calls = map[mcp.ID]*Call{}
	}
	t.calls[id] = c
	t.bytes += size
	t.grown = t.grown || count >= smallTable
	return nil
}

// remove removes a request.
func (t *InFlight) remove(c *Call) {
	c.cancel(nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.calls, c.id.Canonical())
	t.bytes -= c.size
	if len(t.calls) == 0 && t.grown {
		t.calls, t.grown = nil, false
	}
}

// cancel cancels the request that a notifications/cancelled names.
func (t *InFlight) cancel(note *mcp.Request) {
	var p mcp.CancelledParams
	if note.Decode(&p) != nil {
		return
	}
	t.mu.Lock()
	c := t.calls[p.RequestID.Canonical()]
	t.mu.Unlock()
	if c != nil {
		c.cancel(&mcp.CancelError{Reason: p.Reason})
	}
}

// cancelAll cancels the requests of a session.
func (t *InFlight) cancelAll(of *Session, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		if c.session == of {
			c.cancel(cause)
		}
	}
}

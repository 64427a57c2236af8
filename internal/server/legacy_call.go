// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"context"
	"sync"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// Enter makes a call one of the session and ready to be served. The handler's context is
// derived from ctx.
func (s *Session) Enter(ctx context.Context, c *Call) {
	c.session = s
	switch {
	case c.batch != nil:
		c.ctx = ctx
		c.refuse(s.split(ctx, c.batch))
		return
	case c.unreadable != nil && c.unreadable.Response:
		c.isDone, c.err = false, nil
		c.answer = &transport.Message{ID: c.id, Error: &transport.Error{
			Code: c.unreadable.Code, Message: "the answer could not be read: " + c.unreadable.Error(),
		}}
	}
	c.Enter(ctx, s.details.InFlight)
	if c.IsRequest() && !c.isDone {
		if s.isClosed() {
			c.cancel(mcp.ErrClosed)
		}
		s.describe(c.req)
	}
}

// Accept makes m a call of the session, whatever revision it names, ready to be served. The
// handler's context is derived from ctx.
func (s *Session) Accept(ctx context.Context, m transport.Message, from Origin) *Call {
	c := s.server.read(m, from)
	s.Enter(ctx, c)
	return c
}

// serveInSession is [Call.Serve] for a call of a session.
func (c *Call) serveInSession() {
	switch {
	case c.batch != nil:
		c.batch.serve(c.out)
	case c.answer != nil:
		c.session.handleAnswer(c.answer)
	case !c.req.IsNotification():
		c.res, c.err = c.session.serveRequest(c)
	case c.req.Method != revision.Initialized:
		c.session.describe(c.req)
		_, _ = core.Serve(c.ctx, c.server.handler, c.req, nil, c.server.Logger) // a notification has no outcome
	}
}

// IsHandshake reports whether the message is a request to open a session.
func (c *Call) IsHandshake() bool { return c.IsRequest() && c.req.Method == revision.Initialize }

// CompletesHandshake reports whether the message is the second one of the handshake.
func (c *Call) CompletesHandshake() bool {
	return !c.isModern && !c.isDone && c.Method() == revision.Initialized
}

// ChangesSession reports whether the call can change the [State] of its session.
func (c *Call) ChangesSession() bool {
	switch c.Method() {
	case revision.Initialize, revision.SetLevel, mcp.MethodSubscribe, revision.Unsubscribe:
		return true
	}
	return c.batch != nil
}

// A batch is an array of messages.
type batch struct {
	raw   []byte
	from  Origin  // of all messages
	items []*Call // after Session.Enter
}

// maxBatch is the maximum number of messages in a batch.
const maxBatch = 100

// split makes the messages of a batch calls of the session.
func (s *Session) split(ctx context.Context, b *batch) error {
	if !s.Batches() {
		return mcp.Errorf(mcp.CodeInvalidRequest, "a message must be an object, not an array")
	}
	items, err := transport.SplitBatch(b.raw)
	if err != nil {
		return err
	}
	if len(items) > maxBatch {
		return mcp.Errorf(mcp.CodeInvalidRequest, "a batch of %d messages is over the limit of %d", len(items), maxBatch)
	}
	b.items = make([]*Call, len(items))
	for i, item := range items {
		b.items[i] = s.acceptItem(ctx, item, b.from)
	}
	return nil
}

func (s *Session) acceptItem(ctx context.Context, item []byte, from Origin) *Call {
	m, err := transport.ParseMessage(item)
	var c *Call
	if err != nil {
		c = s.server.AcceptUnreadable(err)
	} else if c = s.server.read(m, from); c.IsHandshake() {
		c.Refuse(mcp.Errorf(mcp.CodeInvalidRequest, "initialize must not be in a batch"))
	}
	s.Enter(ctx, c)
	return c
}

// serve serves all messages concurrently.
func (b *batch) serve(out Sender) {
	var all sync.WaitGroup
	for _, item := range b.items {
		all.Go(func() { item.serveSafely(out) })
	}
	all.Wait()
}

// serveSafely is like Serve, for an item of a batch, which has its own goroutine: a panic,
// such as one of out, fails only this item.
func (c *Call) serveSafely(out Sender) {
	defer func() {
		if v := recover(); v != nil && c.req != nil {
			c.res, c.err = nil, core.Panicked(c.ctx, c.req, v, c.server.Logger)
		}
	}()
	c.Serve(out)
}

func (b *batch) cancel(cause error) {
	for _, item := range b.items {
		item.Cancel(cause)
	}
}

// append appends an array of the responses. If there are none, it appends nothing.
func (b *batch) append(dst []byte) []byte {
	start := len(dst)
	for _, item := range b.items {
		separator := byte(',')
		if len(dst) == start {
			separator = '['
		}
		before := len(dst)
		dst = append(dst, separator)
		if dst = item.Append(dst); len(dst) == before+1 {
			dst = dst[:before] // no response
		}
	}
	if len(dst) == start {
		return dst
	}
	return append(dst, ']')
}

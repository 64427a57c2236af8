// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyserver

import (
	"context"
	"slices"
	"sync"

	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// A Call is a message, or a batch of messages, accepted by a session. An accepted request
// is in flight, so it can be cancelled before it is served. A Call implements
// [serving.Call].
type Call struct {
	session *Session
	ctx     context.Context //nolint:containedctx // a Call is accepted in one place and served in another
	cancel  context.CancelCauseFunc
	id      mcp.ID             // of a request
	size    int                // of the params of a request in flight, in bytes
	req     *mcp.Request       // nil for responses and unreadable messages
	answer  *transport.Message // a response to a question, or nil
	batch   []*Call            // nil for a single message
	res     mcp.Result
	err     error // of the handler, or why the message is refused
	refused bool  // err was set before the handler was called
}

// Accept accepts a single message. Only requests are answered. A request is cancelled when
// ctx is done.
func (s *Session) Accept(ctx context.Context, m transport.Message, from serving.Origin) *Call {
	if m.IsResponse() {
		answer := m // only responses are retained
		return &Call{session: s, ctx: ctx, answer: &answer}
	}
	c := &Call{session: s, ctx: ctx, id: m.ID}
	req, err := from.NewRequest(&m)
	switch {
	case err == nil:
		return s.AcceptRequest(ctx, req)
	case !m.IsNotification():
		c.refuse(err)
	}
	return c
}

// AcceptRequest accepts a request or a notification. It is cancelled when ctx is done.
func (s *Session) AcceptRequest(ctx context.Context, req *mcp.Request) *Call {
	c := &Call{session: s, ctx: ctx, id: req.ID, req: req}
	if !req.IsNotification() {
		if err := s.addInFlight(c); err != nil {
			c.refuse(err)
		}
	}
	return c
}

// AcceptUnreadable accepts a message that could not be read. A request is refused; a
// response fails the question that it answers.
func (s *Session) AcceptUnreadable(err *transport.MessageError) *Call {
	c := &Call{session: s, id: err.Message.ID}
	switch {
	case err.Response:
		c.answer = &transport.Message{ID: c.id, Error: &transport.Error{Code: err.Code, Message: "the answer could not be read: " + err.Error()}}
	case !err.Message.IsNotification():
		c.refuse(err)
	}
	return c
}

func (c *Call) refuse(err error) { c.err, c.refused = err, true }

// addInFlight adds a request to the requests in flight.
func (s *Session) addInFlight(c *Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlightLocked(c.req.ID) != nil {
		return serving.DuplicateID(c.req.ID)
	}
	size := len(c.req.Params())
	if err := serving.CheckLoad(len(s.inflight), s.server.MaxInFlight, s.inflightBytes, size); err != nil {
		return err
	}
	c.ctx, c.cancel = context.WithCancelCause(c.ctx)
	if s.isClosed() {
		c.cancel(mcp.ErrClosed)
	}
	s.inflight = append(s.inflight, c)
	c.size = size
	s.inflightBytes += size
	s.describeLocked(c.req)
	return nil
}

// inFlightLocked returns the request in flight with the given id, or nil.
func (s *Session) inFlightLocked(id mcp.ID) *Call {
	id = id.Canonical()
	for _, c := range s.inflight {
		if c.req.ID.Canonical() == id {
			return c
		}
	}
	return nil
}

// removeInFlight removes a request from the requests in flight.
func (c *Call) removeInFlight() {
	c.cancel(nil)
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.inflight, c)
	s.inflight = slices.Delete(s.inflight, i, i+1)
	s.inflightBytes -= c.size
	if len(s.inflight) == 0 {
		s.inflight = nil // an idle session should use little memory
	}
}

// Serve implements [serving.Call].
func (c *Call) Serve(out serving.Sender) {
	switch {
	case c.batch != nil:
		var all sync.WaitGroup
		for _, item := range c.batch {
			all.Go(func() { item.serveSafely(out) })
		}
		all.Wait()
	case c.answer != nil:
		c.session.handleAnswer(c.answer)
	case c.req == nil, c.refused: // it cannot be served
	case c.req.IsNotification():
		c.session.notified(c.ctx, c.req)
	default:
		defer c.removeInFlight()
		c.res, c.err = c.session.serveRequest(c.ctx, c.req, out)
	}
}

// serveSafely is like Serve, for an item of a batch, which has its own goroutine: a panic,
// such as one of out, fails only this item.
func (c *Call) serveSafely(out serving.Sender) {
	defer func() {
		if v := recover(); v != nil && c.req != nil {
			c.res, c.err = nil, core.Panicked(c.ctx, c.req, v, c.session.server.Logger)
		}
	}()
	c.Serve(out)
}

// Err implements [serving.Call]. It returns nil for a batch, because the failure of one
// request does not fail the others.
func (c *Call) Err() error { return c.err }

// Append implements [serving.Call]. The responses to a batch are an array.
func (c *Call) Append(dst []byte) []byte {
	switch {
	case c.batch != nil:
		return c.appendBatch(dst, (*Call).Append)
	case c.refused:
		return core.AppendError(dst, c.id, c.err)
	case c.req == nil, c.req.IsNotification(), serving.WasCancelled(c.ctx):
		return dst
	}
	return translation{c.session.revision()}.appendResponse(dst, c.req.ID, c.res, c.err)
}

// Cancel cancels the call with a cause. It may be called at any time.
func (c *Call) Cancel(cause error) {
	for _, item := range c.batch {
		item.Cancel(cause)
	}
	if c.cancel != nil {
		c.cancel(cause)
	}
}

// MaxBatch is the maximum number of messages in a batch.
const MaxBatch = 100

// AcceptBatch accepts an array of messages, all with the same origin.
func (s *Session) AcceptBatch(ctx context.Context, data []byte, from serving.Origin) *Call {
	items, err := transport.SplitBatch(data)
	if err == nil && len(items) > MaxBatch {
		err = mcp.Errorf(mcp.CodeInvalidRequest, "a batch of %d messages is over the limit of %d", len(items), MaxBatch)
	}
	c := &Call{session: s, ctx: ctx}
	if err != nil {
		c.refuse(err)
		return c
	}
	c.batch = make([]*Call, len(items))
	for i, item := range items {
		c.batch[i] = s.acceptItem(ctx, item, from)
	}
	return c
}

func (s *Session) acceptItem(ctx context.Context, item []byte, from serving.Origin) *Call {
	m, err := transport.ParseMessage(item)
	if err != nil {
		return s.AcceptUnreadable(serving.AsMessageError(err))
	}
	if IsInitialize(&m) {
		c := &Call{session: s, id: m.ID}
		c.refuse(mcp.Errorf(mcp.CodeInvalidRequest, "initialize must not be in a batch"))
		return c
	}
	return s.Accept(ctx, m, from)
}

// appendBatch appends an array of the responses that respond appends for the messages. If
// there are none, it appends nothing.
func (c *Call) appendBatch(dst []byte, respond func(item *Call, dst []byte) []byte) []byte {
	start := len(dst)
	for _, item := range c.batch {
		separator := byte(',')
		if len(dst) == start {
			separator = '['
		}
		before := len(dst)
		dst = append(dst, separator)
		if dst = respond(item, dst); len(dst) == before+1 {
			dst = dst[:before] // no response
		}
	}
	if len(dst) == start {
		return dst
	}
	return append(dst, ']')
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// A Call is a message, or a batch of messages, that [Server.Accept] has read. If it has no
// error, Enter or [Session.Enter] makes it ready to be served, and Serve must then be called
// exactly once. Append returns the response.
type Call struct {
	server   *Server
	session  *Session        // nil if the call belongs to the newest revision
	inFlight *InFlight       // that contains the call; nil if none does
	ctx      context.Context //nolint:containedctx // a Call is accepted in one place and served in another
	cancel   context.CancelCauseFunc
	id       mcp.ID // zero if there is none
	size     int    // of the params of a request in flight, in bytes

	// One of these is not nil.
	req        *mcp.Request            // a request or a notification
	answer     *transport.Message      // a response to a question
	unreadable *transport.MessageError // a message that could not be read
	batch      *batch                  // messages of an older revision

	isModern bool
	isDone   bool   // nothing is left to serve
	out      Sender // nil until Serve is called
	res      mcp.Result
	err      error // of the handler, or why the message is refused
}

// AcceptUnreadable returns the call of a message that could not be read because of err.
func (s *Server) AcceptUnreadable(err error) *Call {
	e, ok := errors.AsType[*transport.MessageError](err)
	if !ok {
		e = &transport.MessageError{Code: transport.CodeInvalidRequest, Err: err}
	}
	c := &Call{server: s, id: e.Message.ID, unreadable: e}
	c.Refuse(e)
	return c
}

// Refuse makes err the response to the call, which is not served.
func (c *Call) Refuse(err error) { c.err, c.isDone = err, true }

// refuse is like Refuse. If err is nil, it has no effect.
func (c *Call) refuse(err error) {
	if err != nil {
		c.Refuse(err)
	}
}

// ID returns the id of the message, which is zero for notifications and batches.
func (c *Call) ID() mcp.ID { return c.id }

// Method returns the method of a request or notification, and "" otherwise.
func (c *Call) Method() string {
	if c.req == nil {
		return ""
	}
	return c.req.Method
}

// IsModern reports whether the message belongs to the newest revision.
func (c *Call) IsModern() bool { return c.isModern }

// IsRequest reports whether the message is a request that could be read.
func (c *Call) IsRequest() bool { return c.req != nil && !c.req.IsNotification() }

// IsResponse reports whether the message is a response to a question.
func (c *Call) IsResponse() bool { return c.answer != nil }

// IsUnreadable reports whether the message could not be read.
func (c *Call) IsUnreadable() bool { return c.unreadable != nil }

// IsBatch reports whether c is a batch.
func (c *Call) IsBatch() bool { return c.batch != nil }

// IsCancellation reports whether the message cancels a request.
func (c *Call) IsCancellation() bool {
	return c.req != nil && c.req.Method == mcp.NotificationCancelled && c.req.IsNotification()
}

// IsListen reports whether the message is a subscription of the newest revision.
func (c *Call) IsListen() bool {
	return c.isModern && !c.isDone && c.req.Method == mcp.MethodListen && !c.req.IsNotification()
}

// Enter makes the call ready to be served. The handler's context is derived from ctx. If t is
// not nil, a request is in flight from then on, or refused, and a cancellation takes effect.
func (c *Call) Enter(ctx context.Context, t *InFlight) {
	c.ctx = ctx
	switch {
	case t == nil:
	case c.IsCancellation():
		t.cancel(c.req)
		c.isDone = true
	case c.IsRequest() && !c.isDone:
		c.refuse(t.add(c))
	}
}

// Serve runs the handler. Messages that the server sends before the response go to out, until
// Serve returns. If out is nil, nothing can be sent.
func (c *Call) Serve(out Sender) {
	if c.inFlight != nil {
		defer c.inFlight.remove(c)
	}
	c.out = out
	switch {
	case c.isDone:
	case c.session != nil:
		c.serveInSession()
	default:
		c.res, c.err = core.Serve(c.ctx, c.server.handler, c.req, c, c.server.Logger)
	}
}

// Notify sends a notification about the request. It returns [mcp.ErrNotDelivered] if nothing
// can be sent. It must not be called after Serve has returned.
func (c *Call) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if c.out == nil {
		return mcp.ErrNotDelivered
	}
	return c.out.Send(ctx, transport.AppendNotification(nil, method, params))
}

// Result returns the result of the handler, or nil if there is none.
func (c *Call) Result() mcp.Result { return c.res }

// Err returns the error of the handler, or why the message is refused. It returns nil for a
// batch, because the failure of one request does not fail the others.
func (c *Call) Err() error { return c.err }

// Append appends the response to dst. If the message is not a request or was cancelled, it
// appends nothing.
func (c *Call) Append(dst []byte) []byte {
	switch {
	case c.batch != nil && !c.isDone:
		return c.batch.append(dst)
	case c.answer != nil, c.isNotification():
		return dst
	case c.isDone:
		return core.AppendError(dst, c.id, c.err)
	case wasCancelled(c.ctx):
		return dst
	case c.session != nil:
		return c.session.translation().appendResponse(dst, c.id, c.res, c.err)
	}
	return mcp.AppendResponse(dst, c.req, c.res, c.err)
}

// isNotification reports whether the message is a notification, which may be unreadable.
func (c *Call) isNotification() bool {
	return c.req != nil && c.req.IsNotification() || c.unreadable != nil && c.unreadable.Message.IsNotification()
}

// wasCancelled reports whether ctx was cancelled by the client.
func wasCancelled(ctx context.Context) bool {
	_, ok := context.Cause(ctx).(*mcp.CancelError) //nolint:errorlint // a cause is not wrapped
	return ok
}

// Cancel cancels a request that is in flight, or those of a batch, with a cause. It may be
// called at any time after the call has entered.
func (c *Call) Cancel(cause error) {
	if c.batch != nil {
		c.batch.cancel(cause)
	}
	if c.cancel != nil {
		c.cancel(cause)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
)

// serveModern serves one message of the modern era, which is independent of all others.
func serveModern(e *endpoint, w http.ResponseWriter, r *http.Request, c *server.Call) {
	if !c.IsRequest() {
		c.Enter(withValues(r.Context(), &httpValues{HTTP: r}), nil)
		c.Serve(nil) // a notification has no response
		writeAccepted(w)
		return
	}
	isListen := c.IsListen()
	accepted, ok := chooseFormats(w, r, formats{JSON: !isListen, Stream: true})
	if !ok {
		return
	}
	parent := context.Background()
	if isListen {
		parent = e.Closing
	}
	re := &modernReply{
		eventWriter: eventWriter{Writer: w, Request: r, Timeout: e.WriteTimeout, Logger: e.Logger},
		accepted:    accepted, context: serverContext{parent, httpValues{HTTP: r}},
	}
	ctx, cancel := context.WithCancelCause(&re.context)
	defer cancel(nil)
	defer context.AfterFunc(r.Context(), func() { cancel(disconnectCause(r)) })()
	if isListen {
		defer afterExpiry(r, func() { cancel(context.DeadlineExceeded) })()
	}
	re.cancel = cancel
	if accepted.Stream {
		re.response = re
	}
	e.InFlight.add(&re.inFlight)
	defer e.InFlight.remove(&re.inFlight)
	c.Enter(ctx, nil)
	c.Serve(re)
	re.finish(ctx, c)
}

// disconnectCause returns why the context of an HTTP request is done. Unless middleware
// cancelled it with another cause, the client has disconnected.
func disconnectCause(r *http.Request) error {
	cause := context.Cause(r.Context())
	if errors.Is(cause, context.Canceled) {
		return &mcp.CancelError{}
	}
	return cause
}

// modernReply is the response to one modern request: a JSON message or, if a notification
// or a heartbeat is sent before it, an event stream. It implements [server.Sender].
type modernReply struct {
	eventWriter
	inFlight

	accepted formats
	// context is what the context of the request is derived from. It is done when the server
	// ends subscriptions; the list of requests in flight ends the others, because a parent that
	// all contexts have is a lock that all requests take. It is not r.Context(), because the
	// cause must be a [*mcp.CancelError] if the client disconnects, which is how a modern client
	// cancels a request.
	context serverContext
}

// Send implements [server.Sender].
func (c *modernReply) Send(ctx context.Context, message []byte) error {
	if !c.accepted.Stream {
		return mcp.ErrNotDelivered
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.eventWriter.Send(messageEvent("", message))
}

// finish writes the response, unless the client has disconnected. If the server ended the
// request, the client may still be connected.
func (c *modernReply) finish(ctx context.Context, call *server.Call) {
	defer c.Close()
	err := call.Err()
	if errors.Is(err, mcp.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	if ctx.Err() != nil && call.Result() == nil && !errors.Is(context.Cause(ctx), mcp.ErrClosed) {
		return
	}
	buf := bufpool.Get()
	defer buf.Put()
	buf.B = call.Append(buf.B)
	if c.accepted.JSON || hasStatus(err) {
		if c.Replace(func(w http.ResponseWriter) { writeResponse(ctx, w, err, buf.B) }) {
			return
		}
	}
	c.Finish(messageEvent("", buf.B))
}

// writeResponse writes the response to a modern request as JSON.
func writeResponse(ctx context.Context, w http.ResponseWriter, err error, message []byte) {
	status := setErrorHeaders(ctx, w.Header(), err)
	if status == 0 {
		status = statusOf(err)
	}
	writeMessage(w, status, message)
}

// statusOf returns the HTTP status of a modern response. Errors for which the specification
// defines no status are sent with 200.
func statusOf(err error) int {
	switch mcp.CodeOf(err) {
	case mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		return http.StatusBadRequest
	case mcp.CodeMethodNotFound:
		return http.StatusNotFound
	default:
		return http.StatusOK
	}
}

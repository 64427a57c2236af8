// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// serveModern serves one request of the modern era, which is independent of all others.
func (h *Handler) serveModern(w http.ResponseWriter, r *http.Request, req *mcp.Request) {
	if err := checkModern(req); err != nil {
		writeMessage(w, http.StatusBadRequest, core.AppendError(nil, req.ID, err))
		return
	}
	if req.IsNotification() {
		ctx := contextWithValues(r.Context(), &requestValues{http: r})
		serving.NewCall(ctx, h.mcp, req, h.opts.Logger).Serve(nil) // a notification has no response
		writeAccepted(w)
		return
	}
	accept := acceptable(r.Header)
	if req.Method == mcp.MethodListen {
		accept.json = false
	}
	accept, ok := chooseFormat(w, accept)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancelCause(h.modernContext(r, req.Method))
	defer cancel(nil)
	defer context.AfterFunc(r.Context(), func() { cancel(disconnectCause(r)) })()
	if req.Method == mcp.MethodListen {
		defer afterExpiry(r, func() { cancel(context.DeadlineExceeded) })()
	}
	c := &modernReply{eventWriter: eventWriter{w: w, timeout: h.opts.WriteTimeout, isHTTP2: r.ProtoMajor > 1}, accept: accept}
	if accept.stream {
		defer startHeartbeat(&h.opts, c).stop()
	}
	call := serving.NewCall(ctx, h.mcp, req, h.opts.Logger)
	call.Serve(c)
	c.finish(ctx, call)
}

// modernContext returns the context of a modern request, but for what its client does: it
// ends when the server stops waiting for the request. Subscriptions end as soon as
// Shutdown is called.
//
// serveModern adds the end of the client's connection, which is how a client of this era
// cancels, and the end of its authentication. The context does not derive from
// r.Context(), because its cause must be a [*mcp.CancelError] if the client disconnects.
func (h *Handler) modernContext(r *http.Request, method string) context.Context {
	server := h.killed
	if method == mcp.MethodListen {
		server = h.closing
	}
	return &serverContext{server, requestValues{http: r}}
}

// disconnectCause returns why the context of an HTTP request is done. Unless middleware
// ended it with a cause of its own, the client has disconnected.
func disconnectCause(r *http.Request) error {
	cause := context.Cause(r.Context())
	if errors.Is(cause, context.Canceled) {
		return &mcp.CancelError{}
	}
	return cause
}

// modernReply is the response to one modern request: a JSON message or, as soon as there
// is a notification or a heartbeat to send before it, an event stream. It implements
// [serving.Sender].
type modernReply struct {
	eventWriter
	accept accepts
}

// Send implements [serving.Sender].
func (c *modernReply) Send(ctx context.Context, message []byte) error {
	if !c.accept.stream {
		return mcp.ErrNotDelivered
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.send(messageEvent("", message))
}

// finish writes the response, unless the client has gone. If the server ended the request,
// the client may still be there.
func (c *modernReply) finish(ctx context.Context, call *serving.ModernCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.closed = true }()
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
	status := 0
	if !c.started {
		status = setErrorHeaders(ctx, c.w.Header(), err)
	}
	switch {
	case status != 0:
		writeMessage(c.w, status, buf.B)
	case c.started || !c.accept.json:
		_ = c.writeLocked(messageEvent("", buf.B)) // a client that has gone needs no response
	default:
		writeMessage(c.w, statusOf(err), buf.B)
	}
}

// checkModern checks what the specification demands of a modern request before it is
// served: headers present, metadata present, both equal, version supported.
func checkModern(req *mcp.Request) error {
	checks := []func(*mcp.Request) error{requireHeaders, core.CheckMeta, compareHeaders, core.CheckVersion}
	if req.IsNotification() {
		checks = []func(*mcp.Request) error{compareVersion}
	}
	for _, check := range checks {
		if err := check(req); err != nil {
			return err
		}
	}
	return nil
}

func requireHeaders(req *mcp.Request) error {
	keys := []string{headerVersion, headerMethod, headerName}
	if !core.IsNamed(req.Method) {
		keys = keys[:2]
	}
	for _, key := range keys {
		switch n := len(req.Header[key]); {
		case n == 0:
			return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s is missing; requests of %s must have it", key, mcp.LatestVersion)
		case n > 1:
			return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s stands %d times", key, n)
		}
	}
	return nil
}

func compareHeaders(req *mcp.Request) error {
	if err := compareVersion(req); err != nil {
		return err
	}
	if method := req.Header[headerMethod][0]; method != req.Method {
		return headerMismatch(headerMethod, method, "method", req.Method)
	}
	if !core.IsNamed(req.Method) {
		return nil
	}
	name, err := transport.DecodeHeaderValue(req.Header[headerName][0])
	if err != nil {
		return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s: %w", headerName, err)
	}
	if name != req.Name() {
		return headerMismatch(headerName, name, "name or URI", req.Name())
	}
	return nil
}

func compareVersion(req *mcp.Request) error {
	values := req.Header[headerVersion]
	if len(values) == 0 || req.Version() == "" || values[0] == req.Version() {
		return nil
	}
	return headerMismatch(headerVersion, values[0], "version", req.Version())
}

func headerMismatch(key, header, member, body string) error {
	return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s is %.80q, but the %s in the body is %.80q", key, header, member, body)
}

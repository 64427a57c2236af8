// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"net/http"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/mcp"
)

// reply is the answer to one request: a JSON message, or, from the moment when there
// is something to say before the answer, an event stream.
type reply struct {
	out    output
	accept accepts
}

// prepare makes a reply. It answers by itself, and reports false, if no answer could
// be given.
func (h *Handler) prepare(reply *reply, w http.ResponseWriter, r *http.Request, accept accepts) bool {
	if accept.stream && !canFlush(w) {
		accept.stream = false
		if !accept.json {
			writeProblem(w, http.StatusInternalServerError, cannotStream(w))
			return false
		}
	}
	if !accept.json && !accept.stream {
		writeProblem(w, http.StatusNotAcceptable, mcp.Errorf(mcp.CodeInvalidRequest, "the client must accept %s or %s", typeJSON, typeStream))
		return false
	}
	reply.accept = accept
	reply.out.of(w, r, h.opts.WriteTimeout)
	return true
}

// heartbeat makes a stream of a request that takes long, if it is none yet.
func (r *reply) heartbeat() {
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	if !r.out.done {
		_ = r.out.comment() // a client that is gone needs none
	}
}

// Notify implements [mcp.Notifier].
func (r *reply) Notify(ctx context.Context, method string, params jsonRaw) error {
	if !r.accept.stream {
		return mcp.ErrNotDelivered
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	buf := bufpool.Get()
	defer buf.Put()
	buf.B = mcp.AppendNotification(buf.B, method, params)
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	return r.out.event("", buf.B)
}

// finish answers, unless the client has gone.
func (r *reply) finish(ctx context.Context, req *mcp.Request, res mcp.Result, err error) {
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	defer func() { r.out.done = true }()
	if aborted(err) {
		panic(http.ErrAbortHandler)
	}
	if ctx.Err() != nil && res == nil && !r.out.alive(ctx) {
		return
	}
	buf := bufpool.Get()
	defer buf.Put()
	buf.B = mcp.AppendResponse(buf.B, req, res, err)
	if !r.out.streaming {
		if status := refuse(ctx, r.out.w, err); status != 0 {
			r.out.answer(status, buf.B)
			return
		}
	}
	if r.out.streaming || !r.accept.json {
		r.out.hold()
		_ = r.out.event("", buf.B) // a client that is gone needs no answer
		r.out.release()
		return
	}
	r.out.answer(statusOf(err), buf.B)
}

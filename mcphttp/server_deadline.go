// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// deadlineWriter bounds the time that a client may take to read a response. The
// deadline is set when the response starts, not when the request arrives, so a handler
// may take as long as it needs. The deadline stays in place because net/http writes
// small responses after the handler has returned. net/http removes it before the next
// request of an HTTP/1 connection; on HTTP/2 it belongs to the stream. An eventWriter
// sets a new deadline for each event. net/http writes short responses only after the handler
// has returned, so the deadline of the head stays. On HTTP/2 an expired one resets even a
// silent stream, so each event sets and clears its own. Flushing short responses was
// rejected: they would lack a Content-Length.
type deadlineWriter struct {
	http.ResponseWriter
	timeout time.Duration
}

// WriteHeader implements [http.ResponseWriter].
func (w *deadlineWriter) WriteHeader(status int) {
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.SetWriteDeadline(time.Now().Add(w.timeout)) // not all writers support deadlines
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap supports [http.ResponseController].
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// limitTime overrides the timeouts of http.Server, which apply to a whole request, with
// BodyTimeout for the body and WriteTimeout for each write.
func (e *endpoint) limitTime(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	e.writers.check(w, r, e.Logger)
	control := http.NewResponseController(w)
	if e.limitsBody(r) {
		_ = control.SetReadDeadline(time.Now().Add(e.BodyTimeout))
	}
	switch {
	case r.ProtoMajor > 1:
		_ = control.SetWriteDeadline(time.Time{}) // http.Server's deadline would reset the stream while the handler runs
	case r.Header["Expect"] != nil:
		_ = control.SetWriteDeadline(time.Now().Add(e.WriteTimeout)) // net/http sends 100 Continue when the body is read
	}
	return &deadlineWriter{w, e.WriteTimeout}
}

func (e *endpoint) limitsBody(r *http.Request) bool { return r.ContentLength != 0 && e.BodyTimeout > 0 }

// endBodyTime removes the read deadline after the body has arrived. net/http does that when
// it reads the end of the body, but middleware may have read it before limitTime was
// called. In that case, net/http is already reading from the connection to detect a
// disconnect, and would mistake an expired deadline for one. On HTTP/2 the deadline applies
// to the body alone.
func (e *endpoint) endBodyTime(w http.ResponseWriter, r *http.Request) {
	if e.limitsBody(r) && r.ProtoMajor < 2 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // not all writers support deadlines
	}
}

// writerCheck warns if middleware hides the methods of the response writer that an endpoint
// needs to flush and to override http.Server.WriteTimeout. It checks only the first
// request, because all requests pass through the same middleware.
type writerCheck struct{ done atomic.Bool }

func (c *writerCheck) check(w http.ResponseWriter, r *http.Request, logger *slog.Logger) {
	if c.done.Load() || c.done.Swap(true) {
		return
	}
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	switch {
	case !canFlush(w):
		logger.WarnContext(r.Context(), "mcphttp: progress, log messages, changes and questions in a session cannot be sent: "+
			"the response writer can neither flush nor be unwrapped: the middleware that made it needs an Unwrap method",
			"writer", fmt.Sprintf("%T", middlewareWriter(w)))
	case server != nil && server.WriteTimeout > 0 && !hasDeadlines(w):
		logger.WarnContext(r.Context(), "mcphttp: http.Server.WriteTimeout will cut off streams and slow answers: "+
			"the response writer has no Unwrap method, which the middleware that made it should add",
			"writer", fmt.Sprintf("%T", middlewareWriter(w)), "WriteTimeout", server.WriteTimeout)
	}
}

// hasDeadlines reports whether w, or a writer that it wraps, supports write deadlines.
func hasDeadlines(w http.ResponseWriter) bool {
	for {
		switch f := w.(type) {
		case interface {
			SetWriteDeadline(deadline time.Time) error
		}:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = f.Unwrap()
		default:
			return false
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/mcp"
)

// writeMessage writes one JSON message as the whole response.
func writeMessage(w http.ResponseWriter, status int, message []byte) {
	header := w.Header()
	header.Set("Content-Type", typeJSON)
	header.Set("Content-Length", strconv.Itoa(len(message)))
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(message) //nolint:gosec // it is JSON and says so; a client that has gone needs no answer
}

// writeAccepted acknowledges a message that has no response.
func writeAccepted(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }

// writeError writes an error response that belongs to no request.
func writeError(w http.ResponseWriter, status int, err error) {
	writeMessage(w, status, core.AppendError(nil, mcp.ID{}, err))
}

// statusOf returns the HTTP status of a modern response. Errors for which the
// specification names no status are sent with 200.
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

// setErrorHeaders sets the headers of an error that HTTP has a status for and returns
// that status. It returns 0 for any other error and for nil.
func setErrorHeaders(ctx context.Context, header http.Header, err error) int {
	if err == nil {
		return 0
	}
	if scope, ok := errors.AsType[*mcp.ScopeError](err); ok {
		header.Set("WWW-Authenticate", challengeFor(ctx, scope.Required))
		return http.StatusForbidden
	}
	if after, ok := mcp.RetryAfter(err); ok {
		header.Set("Retry-After", strconv.FormatFloat(math.Ceil(after.Seconds()), 'f', 0, 64))
		return http.StatusTooManyRequests
	}
	return 0
}

func challengeFor(ctx context.Context, scopes []string) string {
	if challenge, _ := ctx.Value(challengeKey{}).(func([]string) string); challenge != nil {
		return challenge(scopes)
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.Join(scopes, " "))
	return `Bearer error="insufficient_scope", scope="` + quoted + `"`
}

// deadlineWriter bounds the time that a client may take to read a response. The
// deadline is set when the response starts, not when the request arrives, so a handler
// may take as long as it needs. The deadline stays in place because net/http writes
// small responses after the handler has returned. net/http removes it before the next
// request of an HTTP/1 connection; on HTTP/2 it belongs to the stream. An eventWriter
// sets a new deadline for each event.
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

// Unwrap is for [http.ResponseController].
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// limitTime replaces the timeouts of http.Server, which bound a whole request, by
// BodyTimeout for the body and WriteTimeout for each write.
func limitTime(w http.ResponseWriter, r *http.Request, o *Options) http.ResponseWriter {
	control := http.NewResponseController(w)
	if r.ContentLength != 0 && o.BodyTimeout > 0 {
		_ = control.SetReadDeadline(time.Now().Add(o.BodyTimeout)) // net/http removes it at the end of the body
	}
	switch {
	case r.ProtoMajor > 1:
		_ = control.SetWriteDeadline(time.Time{}) // http.Server's would reset the stream while the handler works
	case r.Header["Expect"] != nil:
		_ = control.SetWriteDeadline(time.Now().Add(o.WriteTimeout)) // net/http sends 100 Continue when the body is read
	}
	return &deadlineWriter{w, o.WriteTimeout}
}

// eventWriter writes an event stream as the response to one HTTP request. The head of
// the response goes out with the first event.
//
// Methods whose name ends in Locked need mu; the others take it. The lock of a stream
// may be held when mu is taken; no lock is taken while mu is held.
type eventWriter struct {
	w       http.ResponseWriter
	timeout time.Duration // of each write
	isHTTP2 bool

	mu      sync.Mutex
	started bool  // the head has been written
	closed  bool  // the response is complete, or its handler has returned
	err     error // of the first write that failed
}

func (o *eventWriter) control() *http.ResponseController { return http.NewResponseController(o.w) }

// startLocked writes the head of the response, unless that has been done.
func (o *eventWriter) startLocked() {
	if o.started {
		return
	}
	o.started = true
	header := o.w.Header()
	header.Set("Content-Type", typeStream)
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	header.Set("X-Content-Type-Options", "nosniff")
	o.w.WriteHeader(http.StatusOK)
}

// messageEvent returns the event for a message. The ID is left out if it is empty.
func messageEvent(id string, message []byte) *sse.Message {
	event := new(sse.Message)
	if id != "" {
		event.ID = sse.ID(id)
	}
	event.AppendData(string(message))
	return event
}

// commentEvent returns a comment, which keeps the connection alive.
func commentEvent() *sse.Message {
	event := new(sse.Message)
	event.AppendComment("keep-alive")
	return event
}

// send writes an event and flushes it.
func (o *eventWriter) send(event *sse.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sendLocked(event)
}

// beat sends a heartbeat.
func (o *eventWriter) beat() { _ = o.send(commentEvent()) } // a client that has gone needs none

func (o *eventWriter) sendLocked(event *sse.Message) error {
	if err := o.writeLocked(event); err != nil {
		return err
	}
	return o.flushLocked()
}

// writeLocked writes an event without flushing it. net/http flushes the last event of a
// response, together with its head if that is still buffered, when the handler returns.
//
// Every write gets a deadline of its own, so that neither http.Server.WriteTimeout nor a
// client that has stopped to read decides how long a stream lives.
func (o *eventWriter) writeLocked(event *sse.Message) error {
	switch {
	case o.closed:
		return mcp.ErrNotDelivered
	case o.err != nil:
		return errors.Join(mcp.ErrNotDelivered, o.err)
	case o.started:
		_ = o.control().SetWriteDeadline(time.Now().Add(o.timeout)) // not all writers support deadlines
	}
	o.startLocked()
	buf := bufpool.Get() // WriteTo writes an event in many parts
	defer buf.Put()
	_, _ = event.WriteTo(buf) // a buffer takes everything
	_, o.err = o.w.Write(buf.B)
	return o.err
}

// flushLocked sends what has been written. A write deadline that passes resets a silent
// stream of HTTP/2, so it is removed there. On HTTP/1 it does no harm to a silent
// stream, and stays for what net/http writes at the end of the response.
func (o *eventWriter) flushLocked() error {
	if o.err == nil {
		o.err = o.control().Flush()
	}
	if o.err == nil && o.isHTTP2 {
		_ = o.control().SetWriteDeadline(time.Time{})
	}
	return o.err
}

// canFlush reports whether w, or a writer that it wraps, can send at once what is
// written to it.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch f := w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = f.Unwrap()
		default:
			return false
		}
	}
}

func cannotStream(w http.ResponseWriter) error {
	return mcp.Errorf(mcp.CodeInternalError,
		"this request needs an event stream, but the response writer %T can neither flush nor be unwrapped: the middleware that made it needs an Unwrap method", w)
}

// heartbeat keeps a response alive: it sends something at regular intervals.
type heartbeat struct {
	opts     *Options
	response interface{ beat() }

	mu    sync.Mutex  // held while fire calls beat
	timer *time.Timer // nil if it is stopped
}

// startHeartbeat calls the method beat of a response at intervals of Options.Heartbeat until
// stop is called, or never if that is not positive. Each call has a goroutine of its own, so
// that a client that does not read holds up no other one.
func startHeartbeat(o *Options, response interface{ beat() }) *heartbeat {
	h := &heartbeat{opts: o, response: response}
	if o.Heartbeat > 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.timer = time.AfterFunc(o.Heartbeat, h.fire)
	}
	return h
}

func (h *heartbeat) fire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil && h.beat() {
		h.timer.Reset(h.opts.Heartbeat)
	}
}

// beat sends a heartbeat on a goroutine that is not that of the request: a panic of the
// response writer, which may be that of a middleware, would end the process. It reports
// whether there was none.
func (h *heartbeat) beat() (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			h.opts.Logger.Error("mcphttp: the response writer panicked when a heartbeat was sent", "panic", fmt.Sprint(v))
		}
	}()
	h.response.beat()
	return true
}

// stop ends the heartbeat and waits for a call of beat to return. It may be called more
// than once, but not with a lock that beat takes.
func (h *heartbeat) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
		h.timer, h.response = nil, nil // the runtime may keep a stopped timer for a while, and what it refers to
	}
}

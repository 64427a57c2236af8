// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/mcp"
)

// An eventWriter writes an event stream as the response to one HTTP request. The response
// header is sent with the first event. Its methods are safe for concurrent use.
//
// methods whose name ends in Locked require mu; the others acquire it. No lock is acquired
// while mu is held.
type eventWriter struct {
	Writer  http.ResponseWriter
	Request *http.Request
	Timeout time.Duration // of each write
	Logger  *slog.Logger  // receives panics of Writer

	mu      sync.Mutex
	started bool  // the header has been written
	closed  bool  // the response is complete, or is not an event stream
	err     error // of the first write that failed
}

// errPanicked is the error of a write during which the response writer panicked. The response
// is lost, and a client that reconnects would not help.
var errPanicked = fmt.Errorf("mcphttp: the response writer panicked: %w", mcp.ErrNotDelivered)

// recoverLocked, which must be deferred, turns a panic of the response writer into an error.
// The writer may belong to middleware, and many goroutines write events: those of questions,
// heartbeats and changes, on which net/http does not recover. After a panic, nothing more is
// written.
func (o *eventWriter) recoverLocked(err *error) {
	v := recover()
	if v == nil {
		return
	}
	o.err = errPanicked // the value is not for the client
	if err != nil {
		*err = o.err
	}
	o.Logger.ErrorContext(o.Request.Context(), "mcphttp: the response writer panicked", "writer", fmt.Sprintf("%T", middlewareWriter(o.Writer)),
		"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
}

// newEventWriter returns an eventWriter for the response to r.
func (e *endpoint) newEventWriter(w http.ResponseWriter, r *http.Request) *eventWriter {
	return &eventWriter{Writer: w, Request: r, Timeout: e.WriteTimeout, Logger: e.Logger}
}

// messageEvent returns an event with a message. If id is empty, the event has no ID.
func messageEvent(id string, message []byte) *sse.Message {
	event := new(sse.Message)
	if id != "" {
		event.ID = sse.ID(id)
	}
	event.AppendData(string(message))
	return event
}

// Start writes the response header, unless it has been written or the response is complete.
// net/http sends it with the data that follows.
func (o *eventWriter) Start() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		_ = o.startLocked() // the first write returns the error again
	}
}

// Write writes an event, which is sent with the data that follows, or at the end of the response.
func (o *eventWriter) Write(event *sse.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writeLocked(event)
}

// Send writes an event and flushes it.
func (o *eventWriter) Send(event *sse.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.writeLocked(event); err != nil {
		return err
	}
	return o.flushLocked()
}

// SendComment sends a comment, which keeps the connection alive.
func (o *eventWriter) SendComment() error {
	event := new(sse.Message)
	event.AppendComment("keep-alive")
	return o.Send(event)
}

// Beat implements [beater].
func (o *eventWriter) Beat() { _ = o.SendComment() } // a disconnected client needs none

// Finish writes the last event, which net/http sends when the handler returns, and marks
// the response as complete, so that no heartbeat is sent in between.
func (o *eventWriter) Finish(event *sse.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.writeLocked(event) // a disconnected client needs no response
	o.closed = true
}

// Close marks the response as complete: nothing more is written.
func (o *eventWriter) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// Replace calls write to send a response other than an event stream, and marks the response
// as complete. If the stream has started or the response is complete, Replace does nothing
// and returns false.
func (o *eventWriter) Replace(write func(w http.ResponseWriter)) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.started || o.closed {
		return false
	}
	o.closed = true
	write(o.Writer)
	return true
}

// AnnounceClose tells the client that its connection will be closed, if the response header
// has not been written. Otherwise the client would send its next request on the connection,
// and that request would be lost.
func (o *eventWriter) AnnounceClose() {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.recoverLocked(nil)
	if !o.started && !o.isHTTP2() {
		o.Writer.Header().Set("Connection", "close")
	}
}

// DeleteHeader removes a header of the response. It has no effect once the header was sent.
func (o *eventWriter) DeleteHeader(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Writer.Header().Del(key)
}

// Disconnect ends the response, unless it is complete, and closes its connection before its
// handler returns.
func (o *eventWriter) Disconnect() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	defer o.recoverLocked(nil)
	_ = o.startLocked()
	_ = o.flushLocked() // a disconnected client needs nothing
	o.err = mcp.ErrNotDelivered
	conn, rw, err := o.control().Hijack()
	if err != nil { // HTTP/2, which resets the stream when its deadline passes
		_ = o.control().SetWriteDeadline(time.Unix(1, 0))
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(o.Timeout))
	_, _ = rw.WriteString("0\r\n\r\n") // the end of a chunked body
	_ = rw.Flush()
	_ = conn.Close()
}

func (o *eventWriter) isHTTP2() bool { return o.Request.ProtoMajor > 1 }

func (o *eventWriter) control() *http.ResponseController { return http.NewResponseController(o.Writer) }

// startLocked writes the response header, unless it has been written.
func (o *eventWriter) startLocked() (err error) {
	if o.started {
		return nil
	}
	defer o.recoverLocked(&err)
	o.started = true
	h := o.Writer.Header()
	h.Set("Content-Type", header.EventStream)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	o.Writer.WriteHeader(http.StatusOK)
	return nil
}

// writeLocked writes an event without flushing it. When the handler returns, net/http sends
// the last event of a response, together with the header if that is still buffered.
//
// Every write has its own deadline, so that neither http.Server.WriteTimeout nor a client
// that has stopped reading determines how long a stream lives.
func (o *eventWriter) writeLocked(event *sse.Message) (err error) {
	defer o.recoverLocked(&err)
	switch {
	case o.closed:
		return mcp.ErrNotDelivered
	case o.err != nil:
		return errors.Join(mcp.ErrNotDelivered, o.err)
	case o.started:
		_ = o.control().SetWriteDeadline(time.Now().Add(o.Timeout)) // not all writers support deadlines
	}
	if err := o.startLocked(); err != nil {
		return err
	}
	buf := bufpool.Get() // WriteTo writes an event in many parts
	defer buf.Put()
	_, _ = event.WriteTo(buf) // writing to a buffer never fails
	_, o.err = o.Writer.Write(buf.B)
	return o.err
}

// flushLocked sends what has been written. On HTTP/2, a write deadline that passes resets
// an idle stream, so the deadline is removed. On HTTP/1, it does not affect an idle stream,
// and remains for what net/http writes at the end of the response.
func (o *eventWriter) flushLocked() (err error) {
	defer o.recoverLocked(&err)
	if o.err == nil {
		o.err = o.control().Flush()
	}
	if o.err == nil && o.isHTTP2() {
		_ = o.control().SetWriteDeadline(time.Time{})
	}
	return o.err
}

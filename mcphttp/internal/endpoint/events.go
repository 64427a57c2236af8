// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package endpoint

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/internal/header"
)

// An EventWriter writes an event stream as the response to one HTTP request. The head of
// the response goes out with the first event. Its methods are safe for concurrent use.
//
// Methods whose name ends in Locked need mu; the others take it. No lock is taken while mu is
// held.
type EventWriter struct {
	Writer  http.ResponseWriter
	Request *http.Request
	Timeout time.Duration // of each write

	mu      sync.Mutex
	started bool  // the head has been written
	closed  bool  // the response is complete, or another one than an event stream
	err     error // of the first write that failed
}

// NewEventWriter returns a writer of the response to r.
func (e *Endpoint) NewEventWriter(w http.ResponseWriter, r *http.Request) *EventWriter {
	return &EventWriter{Writer: w, Request: r, Timeout: e.WriteTimeout}
}

// MessageEvent returns the event for a message. The ID is left out if it is empty.
func MessageEvent(id string, message []byte) *sse.Message {
	event := new(sse.Message)
	if id != "" {
		event.ID = sse.ID(id)
	}
	event.AppendData(string(message))
	return event
}

// Start writes the head of the response, unless that has been done, or the response is
// complete. net/http sends it with what follows.
func (o *EventWriter) Start() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.startLocked()
	}
}

// Write writes an event, which is sent with what follows, or at the end of the response.
func (o *EventWriter) Write(event *sse.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writeLocked(event)
}

// Send writes an event and sends it.
func (o *EventWriter) Send(event *sse.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.writeLocked(event); err != nil {
		return err
	}
	return o.flushLocked()
}

// SendComment sends a comment, which keeps the connection alive.
func (o *EventWriter) SendComment() error {
	event := new(sse.Message)
	event.AppendComment("keep-alive")
	return o.Send(event)
}

// Beat implements [Beater].
func (o *EventWriter) Beat() { _ = o.SendComment() } // a client that has gone needs none

// Finish writes the last event, which net/http sends when the handler returns, and marks the
// response as complete: no heartbeat comes between the two.
func (o *EventWriter) Finish(event *sse.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.writeLocked(event) // a client that has gone needs no response
	o.closed = true
}

// Close marks the response as complete: nothing is written any more.
func (o *EventWriter) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// Replace calls write for another response than an event stream, and reports whether it did:
// the stream must not have begun. Nothing else is written then.
func (o *EventWriter) Replace(write func(w http.ResponseWriter)) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.started || o.closed {
		return false
	}
	o.closed = true
	write(o.Writer)
	return true
}

// AnnounceClose tells the client, if the head of the response has not been written, that
// its connection will be closed. Otherwise the client would send its next request on the
// connection, which would be lost.
func (o *EventWriter) AnnounceClose() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.started && !o.isHTTP2() {
		o.Writer.Header().Set("Connection", "close")
	}
}

// Disconnect ends the response although its handler has not returned.
func (o *EventWriter) Disconnect() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.startLocked()
	_ = o.flushLocked() // a client that has gone needs nothing
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

func (o *EventWriter) isHTTP2() bool { return o.Request.ProtoMajor > 1 }

func (o *EventWriter) control() *http.ResponseController { return http.NewResponseController(o.Writer) }

// startLocked writes the head of the response, unless that has been done.
func (o *EventWriter) startLocked() {
	if o.started {
		return
	}
	o.started = true
	h := o.Writer.Header()
	h.Set("Content-Type", header.EventStream)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	o.Writer.WriteHeader(http.StatusOK)
}

// writeLocked writes an event without sending it. net/http sends the last event of a
// response, together with its head if that is still buffered, when the handler returns.
//
// Every write gets a deadline of its own, so that neither http.Server.WriteTimeout nor a
// client that has stopped to read decides how long a stream lives.
func (o *EventWriter) writeLocked(event *sse.Message) error {
	switch {
	case o.closed:
		return mcp.ErrNotDelivered
	case o.err != nil:
		return errors.Join(mcp.ErrNotDelivered, o.err)
	case o.started:
		_ = o.control().SetWriteDeadline(time.Now().Add(o.Timeout)) // not all writers support deadlines
	}
	o.startLocked()
	buf := bufpool.Get() // WriteTo writes an event in many parts
	defer buf.Put()
	_, _ = event.WriteTo(buf) // a buffer takes everything
	_, o.err = o.Writer.Write(buf.B)
	return o.err
}

// flushLocked sends what has been written. A write deadline that passes resets a silent
// stream of HTTP/2, so it is removed there. On HTTP/1 it does no harm to a silent
// stream, and stays for what net/http writes at the end of the response.
func (o *EventWriter) flushLocked() error {
	if o.err == nil {
		o.err = o.control().Flush()
	}
	if o.err == nil && o.isHTTP2() {
		_ = o.control().SetWriteDeadline(time.Time{})
	}
	return o.err
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
	"unsafe"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/mcp"
)

type jsonRaw = json.RawMessage

// output writes an event stream to one HTTP response. Its methods need the lock.
type output struct {
	w       http.ResponseWriter
	timeout time.Duration
	control *http.ResponseController // nil before the stream is open
	until   time.Time                // the deadline for writes

	mu        sync.Mutex
	held      *bufpool.Buffer // takes what is written, nil if that goes out
	shared    bool            // the connection is shared with other responses, as in HTTP/2
	streaming bool            // the head of the stream is out
	done      bool            // the answer is out: no more heartbeats
	err       error
}

// of makes it write the response to r.
func (o *output) of(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	o.w, o.timeout, o.shared = w, timeout, r.ProtoMajor > 1
}

// answer writes a JSON message, which is the whole response.
func (o *output) answer(status int, message []byte) { writeResponse(o.w, status, message) }

// open begins the stream, unless that is done.
func (o *output) open() {
	if o.streaming {
		return
	}
	o.streaming = true
	o.control = http.NewResponseController(o.w)
	header := o.head()
	header["Cache-Control"] = noCache
	header["X-Accel-Buffering"] = noBuffering
	o.w.WriteHeader(http.StatusOK)
}

// head sets the header of any event stream and returns it.
func (o *output) head() http.Header {
	header := o.w.Header()
	header["Content-Type"] = streamType
	header["X-Content-Type-Options"] = noSniff
	return header
}

// hold keeps what is written from now on until it is released. A stream that ends
// with what it begins with is one write, as any other response.
func (o *output) hold() {
	if !o.streaming {
		o.held = bufpool.Get()
	}
}

// release writes what was held, which is the whole stream: nothing on the way could
// hold back a part of it.
func (o *output) release() {
	held := o.held
	if held == nil {
		return
	}
	defer held.Put()
	o.held = nil
	if len(held.B) == 0 {
		return
	}
	o.streaming = true
	declareLength(o.head(), len(held.B))
	o.w.WriteHeader(http.StatusOK)
	_, o.err = o.w.Write(held.B)
}

// named writes an event of a type of its own.
func (o *output) named(kind, data string) error {
	m := sse.Message{Type: sse.Type(kind)}
	m.AppendData(data)
	return o.write(&m, len(data))
}

// event writes one message. The id is left out if it is empty.
func (o *output) event(id string, message []byte) error {
	if len(message) > maxCopied || bytes.ContainsAny(message, "\r\n") {
		var m sse.Message
		if id != "" {
			m.ID = sse.ID(id)
		}
		// The message does not outlive this call, and nobody writes to it meanwhile.
		m.AppendData(unsafe.String(unsafe.SliceData(message), len(message))) //nolint:gosec // as said above
		return o.write(&m, len(message))
	}
	if err := o.ready(); err != nil {
		return err
	}
	if o.held != nil {
		o.held.B = appendEvent(o.held.B, id, message)
		return nil
	}
	buf := bufpool.Get()
	defer buf.Put()
	buf.B = appendEvent(buf.B, id, message)
	_, o.err = o.w.Write(buf.B)
	return o.flush()
}

// appendEvent appends an event with a message of one line, as nearly all are. It is
// what a change that thousands hear of comes down to.
func appendEvent(dst []byte, id string, message []byte) []byte {
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	return append(append(append(dst, "data: "...), message...), "\n\n"...)
}

// prime adds an event without a message: it gives the client an id to come back
// with, and says when to. It goes out with what is written next.
func (o *output) prime(id string, retry time.Duration) error {
	m := sse.Message{ID: sse.ID(id), Retry: retry}
	m.AppendData("\n") // a data field that is there, and empty
	return o.add(&m, 0)
}

// comment writes a heartbeat.
func (o *output) comment() error {
	var m sse.Message
	m.AppendComment("keep-alive")
	return o.write(&m, 0)
}

// write writes an event with so many bytes of data.
func (o *output) write(m *sse.Message, size int) error {
	if err := o.add(m, size); err != nil || o.held != nil {
		return err
	}
	return o.flush()
}

// add adds an event to what is to be flushed.
func (o *output) add(m *sse.Message, size int) error {
	if err := o.ready(); err != nil {
		return err
	}
	if o.held != nil {
		_, err := m.WriteTo(o.held)
		return err
	}
	o.put(m, size)
	return o.err
}

// ready makes the stream ready to be written to, unless that is held. It gives every
// write a deadline, and flush none to the silence after it, so that neither the
// server's WriteTimeout nor a client that has stopped to read decides how long a
// stream lives. Where the connection is the response's alone, a deadline that is over
// in the silence does no harm.
func (o *output) ready() error {
	switch {
	case o.err != nil:
		return errors.Join(mcp.ErrNotDelivered, o.err)
	case o.held != nil:
		return nil
	case o.streaming:
		o.extend()
	}
	o.open()
	return nil
}

// flush sends what was added.
func (o *output) flush() error {
	if o.err == nil {
		o.err = o.control.Flush()
	}
	if o.err == nil && o.shared {
		o.until = time.Time{}
		_ = o.control.SetWriteDeadline(o.until)
	}
	return o.err
}

// extend sets the deadline for what is written now. Events that follow each other
// closely share one, so that setting it does not cost as much as writing them.
func (o *output) extend() {
	now := time.Now()
	if o.until.Sub(now) > o.timeout-o.timeout/8 {
		return
	}
	o.until = now.Add(o.timeout)
	_ = o.control.SetWriteDeadline(o.until) // not all writers have deadlines
}

// put writes an event, a small one at once: the parts of an event are many, and each
// write of a response has its price.
func (o *output) put(m *sse.Message, size int) {
	if size > maxCopied {
		_, o.err = m.WriteTo(o.w)
		return
	}
	buf := bufpool.Get()
	defer buf.Put()
	_, _ = m.WriteTo(buf) // a buffer takes everything
	_, o.err = o.w.Write(buf.B)
}

// maxCopied is how much data it is cheaper to copy than to write by itself.
const maxCopied = 8 << 10

// alive reports whether the client may still be there although ctx is done: it
// was the server that ended the request.
func (o *output) alive(ctx context.Context) bool {
	return o.err == nil && errors.Is(context.Cause(ctx), mcp.ErrClosed)
}

func aborted(err error) bool { return errors.Is(err, mcp.ErrAbortHandler) }

// canFlush reports whether what is written to w can be sent at once, by w itself
// or by a writer that it wraps.
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

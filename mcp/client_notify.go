// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"log/slog"
)

// Bounds on the notifications that wait for a function of the client: their number and
// their size.
const (
	maxNotes     = 4096
	maxNoteBytes = 16 << 20
)

// newNoteQueue returns a queue for calls of the client's functions.
func newNoteQueue(c *Conn) *serialQueue {
	q := newSerialQueue(maxNotes, c.logPanic)
	q.maxBytes = maxNoteBytes
	q.onDrop = func() {
		c.client.opts.Logger.Warn("mcp: notifications are dropped: the client's functions are too slow", "waiting", maxNotes, "bytes", maxNoteBytes)
	}
	return q
}

// callSafely calls a function of the program. A panic is logged, and becomes an error.
func callSafely(logger *slog.Logger, fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = logPanic(logger, v)
		}
	}()
	return fn()
}

// logPanic logs a panic of a function of the program, and returns an error for it.
func logPanic(logger *slog.Logger, v any) error {
	return panicked(context.Background(), &Request{call: new(call)}, v, logger)
}

func (c *Conn) logPanic(v any) { _ = logPanic(c.client.opts.Logger, v) }

// receiveNotification passes a notification to the call or the subscription that it
// belongs to, or to the client's functions. About is the ID of the request on whose stream
// it came, zero if that is not known.
func (c *Conn) receiveNotification(note *Request, about ID) {
	if note.Method == NotificationProgress {
		c.receiveProgress(note)
		return
	}
	if f := c.forwarderOf(note, about); f != nil && f.receive(note) {
		return
	}
	if note.Method == NotificationCancelled && c.endForwarder(note) {
		return
	}
	if note.Method == NotificationMessage && c.receiveLog(note, about) {
		return
	}
	c.enqueue(note)
}

// enqueue queues a call of the client's function for a notification.
func (c *Conn) enqueue(note *Request) {
	c.notes.add(len(note.Params()), func() { c.callFunction(note) })
}

func (c *Conn) callFunction(note *Request) {
	o := &c.client.opts
	switch {
	case note.Method == NotificationMessage && o.Log != nil:
		var p LoggingMessageParams
		if note.Decode(&p) == nil {
			o.Log(c.ctx, c, &p)
		}
	case o.Notification != nil:
		o.Notification(c.ctx, c, note)
	}
}

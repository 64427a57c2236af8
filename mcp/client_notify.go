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

// newNoteQueue returns the queue for calls of the client's functions. It is held until
// Connect returns.
func newNoteQueue(c *Conn) *serialQueue {
	q := newSerialQueue(maxNotes, c.logPanic)
	q.maxBytes, q.held = maxNoteBytes, true
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

// receiveLog passes a log message to the listener of the call that it is about, and reports
// whether the client's own function need not be called. If the stream and the message do
// not name the call, the message is passed on only if it can be about one call alone.
func (c *Conn) receiveLog(note *Request, about ID) (handled bool) {
	var p LoggingMessageParams
	if note.Decode(&p) != nil {
		return false
	}
	own := c.client.opts.LogLevel
	if about.IsZero() {
		_ = p.Meta.Get(MetaProgressToken, &about)
	}
	if id, err := c.inFlight.Attribute(about); err == nil {
		if l := c.listenerOf(id); l != nil && l.log != nil {
			l.queue.add(0, func() { l.log(&p) })
			handled = own == ""
		}
	}
	return handled || !p.Level.reaches(own)
}

// reaches reports whether a message of level l is to be sent to a peer that wants messages
// from level lowest on. It is true if one of the levels is unknown.
func (l LoggingLevel) reaches(lowest LoggingLevel) bool {
	level, ok := l.Level()
	bound, bounded := lowest.Level()
	return !ok || !bounded || level >= bound
}

// notifyLog passes a log message on to the sender of the request, if it wants messages of
// that level.
func (r *Request) notifyLog(ctx context.Context, p *LoggingMessageParams) {
	if r.LogLevel() == "" || !p.Level.reaches(r.LogLevel()) {
		return
	}
	params := *p
	params.Meta = withoutKey(p.Meta, MetaProgressToken)
	r.addProgressToken(&params)
	_ = r.Notify(ctx, NotificationMessage, &params) // the sender may not listen
}

// addProgressToken adds the progress token of the request, if it has one, to a log message.
// Where all calls share a stream, nothing else says which call a message is about.
func (r *Request) addProgressToken(p *LoggingMessageParams) {
	if token := r.ProgressToken(); !token.IsZero() {
		p.Meta.Set(MetaProgressToken, token)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
)

// Bounds on the notifications that wait for a function of the client: their number and
// their size.
const (
	maxNotes     = 4096
	maxNoteBytes = 16 << 20
)

// newNoteQueue returns a queue for calls of the client's functions. It calls onDrop when
// it begins to drop notifications.
func newNoteQueue(c *Conn, onDrop func()) *serialQueue {
	q := newSerialQueue(maxNotes, c.logPanic)
	q.maxBytes, q.onDrop = maxNoteBytes, onDrop
	return q
}

// callSafely calls a function of the program, and logs a panic in it.
func (c *Conn) callSafely(fn func()) {
	defer func() {
		if v := recover(); v != nil {
			c.logPanic(v)
		}
	}()
	fn()
}

// logPanic logs a panic of a function of the program.
func (c *Conn) logPanic(v any) { _ = panicked(c.ctx, newRequest(), v, c.client.opts.Logger) }

// notified takes a notification of the server's.
func (c *Conn) notified(note *Request, about ID) {
	if note.Method == NotificationProgress {
		c.progressed(note)
		return
	}
	if f := c.forwarderOf(note, about); f != nil && f.receive(note) {
		return
	}
	if note.Method == NotificationCancelled && c.endedByServer(note) {
		return
	}
	if note.Method == NotificationMessage && c.logged(note, about) {
		return
	}
	c.notes.add(len(note.Params()), func() { c.tell(c.ctx, note) })
}

// tellLater calls the client's function for a notification that the server did not
// send, but would have.
func (c *Conn) tellLater(method string, params any) {
	if note, err := NewRequest(method, params); err == nil {
		c.notes.add(len(note.Params()), func() { c.tell(c.ctx, note) })
	}
}

// forwarderOf returns the forwarder of the subscription that a notification names, or on
// whose stream it came, or nil.
func (c *Conn) forwarderOf(note *Request, about ID) *forwarder {
	var id ID
	_ = note.Meta().Get(MetaSubscriptionID, &id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.forwarders[id.Canonical()]; f != nil {
		return f
	}
	return c.forwarders[about]
}

// endedByServer ends the subscription that a notifications/cancelled is about, if it
// is about one.
func (c *Conn) endedByServer(note *Request) bool {
	var p CancelledParams
	if note.Decode(&p) != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.forwarders[p.RequestID.Canonical()]
	if ok {
		f.end(errEndedByServer)
	}
	return ok
}

// errEndedByServer is why the call of a subscription ends that the server has ended.
var errEndedByServer = errors.New("mcp: the server ended the subscription")

// tell calls the client's function for a notification.
func (c *Conn) tell(ctx context.Context, note *Request) {
	o := &c.client.opts
	switch {
	case note.Method == NotificationToolsListChanged && o.ToolsChanged != nil:
		o.ToolsChanged(ctx, c)
	case note.Method == NotificationPromptsListChanged && o.PromptsChanged != nil:
		o.PromptsChanged(ctx, c)
	case note.Method == NotificationResourcesListChanged && o.ResourcesChanged != nil:
		o.ResourcesChanged(ctx, c)
	case note.Method == NotificationResourceUpdated && o.ResourceUpdated != nil:
		o.ResourceUpdated(ctx, c, note.Name())
	case note.Method == NotificationMessage && o.Log != nil:
		var p LogParams
		if note.Decode(&p) == nil {
			o.Log(ctx, c, &p)
		}
	case o.Notification != nil:
		o.Notification(ctx, c, note.Method, note)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"sync"
)

// Bounds on what may wait for a function: how many notifications, and how much memory
// they keep, of which one may keep more.
const (
	maxNotes     = 4096
	maxNoteBytes = 16 << 20
)

// noteQueue calls functions, one after the other, off the goroutine that reads: those of
// the client, or those of one subscription, so that none of these waits for another.
type noteQueue struct {
	conn *Conn
	full func() // called with the lock when the queue begins to drop

	mu       sync.Mutex
	waiting  []note
	bytes    int
	running  bool
	held     bool // nothing is called yet
	dropping bool // and nothing has been called since
	closed   bool
}

type note struct {
	call func()
	size int
}

// newNoteQueue makes a queue that calls full when it begins to drop.
func newNoteQueue(c *Conn, full func()) *noteQueue { return &noteQueue{conn: c, full: full} }

// add enters a call of a function about size bytes. A queue that is full drops it; add
// reports whether it was taken.
func (q *noteQueue) add(size int, fn func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return false
	case len(q.waiting) >= maxNotes, len(q.waiting) > 0 && q.bytes+size > maxNoteBytes:
		if !q.dropping {
			q.dropping = true
			q.full()
		}
		return false
	}
	q.waiting = append(q.waiting, note{fn, size})
	q.bytes += size
	q.runLocked()
	return true
}

// start begins to call what waits in a queue that was held.
func (q *noteQueue) start() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = false
	q.runLocked()
}

func (q *noteQueue) runLocked() {
	if !q.running && !q.held && len(q.waiting) > 0 {
		q.running = true
		go q.run()
	}
}

func (q *noteQueue) run() {
	for {
		fn := q.next()
		if fn == nil {
			return
		}
		q.call(fn)
	}
}

func (q *noteQueue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || q.closed {
		q.running, q.waiting, q.bytes = false, nil, 0
		return nil
	}
	first := q.waiting[0]
	q.waiting[0] = note{}
	q.waiting = q.waiting[1:]
	q.bytes -= first.size
	q.dropping = false
	return first.call
}

// call keeps a panic of a function from ending the process.
func (q *noteQueue) call(fn func()) {
	defer func() {
		if v := recover(); v != nil {
			_ = panicked(q.conn.ctx, newRequest(), v, q.conn.client.opts.Logger)
		}
	}()
	fn()
}

// close drops what waits. It does not wait for the function that runs, which may
// be the one that closes.
func (q *noteQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

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

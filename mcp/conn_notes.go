// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"sync"
)

// maxNotes is how many notifications may wait for the client's functions.
const maxNotes = 4096

// noteQueue calls the client's functions, one after the other, off the goroutine
// that reads.
type noteQueue struct {
	conn *Conn

	mu      sync.Mutex
	waiting []func()
	running bool
	closed  bool
}

func newNoteQueue(c *Conn) *noteQueue { return &noteQueue{conn: c} }

// add enters a call of a function. A queue that is full drops it, and says so; add
// reports whether it was taken.
func (q *noteQueue) add(fn func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return false
	case len(q.waiting) >= maxNotes:
		q.conn.client.opts.Logger.Warn("mcp: a notification was dropped: the client's functions are too slow")
		return false
	}
	q.waiting = append(q.waiting, fn)
	if !q.running {
		q.running = true
		go q.run()
	}
	return true
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
		q.running, q.waiting = false, nil
		return nil
	}
	fn := q.waiting[0]
	q.waiting = q.waiting[1:]
	return fn
}

// settle waits until what has come so far has been told.
func (q *noteQueue) settle(ctx context.Context) {
	told := make(chan struct{})
	if !q.add(func() { close(told) }) {
		return
	}
	select {
	case <-told:
	case <-ctx.Done():
	case <-q.conn.ctx.Done():
	}
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
	if take := c.followerOf(note, about); take != nil {
		take(note)
		return
	}
	if note.Method == NotificationCancelled && c.endedByServer(note) {
		return
	}
	if note.Method == NotificationMessage && c.logged(note, about) {
		return
	}
	c.notes.add(func() { c.tell(c.ctx, note) })
}

// tellLater calls the client's function for a notification that the server did not
// send, but would have.
func (c *Conn) tellLater(method string, params any) {
	if note, err := NewRequest(method, params); err == nil {
		c.notes.add(func() { c.tell(c.ctx, note) })
	}
}

// followerOf is who follows the subscription that a notification belongs to: it
// names the subscription, or came on its stream.
func (c *Conn) followerOf(note *Request, about ID) func(*Request) {
	var id ID
	_ = note.Meta().Get(MetaSubscriptionID, &id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if sub := c.subs[id]; sub.take != nil {
		return sub.take
	}
	return c.subs[about].take
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
	sub, ok := c.subs[p.RequestID]
	if ok {
		sub.end(errEndedByServer)
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

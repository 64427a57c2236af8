// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"maps"
	"sync"
)

// forwarder collects the notifications of one subscription at the server, and sends them
// to the sender of the request that began it, under the id of that request. They wait
// until the server has acknowledged the subscription.
type forwarder struct {
	req  *Request
	end  context.CancelCauseFunc // ends the subscription at the server
	wake chan struct{}           // receives when there is something to send; has one place

	mu           sync.Mutex
	accepted     *SubscriptionFilter // nil before the acknowledgement
	acknowledged bool                // the sender knows what was accepted
	missed       bool                // anything that was accepted may have changed
	pending      changeSet
	bytes        int // of the pending URIs
}

// newForwarder returns a forwarder of a new subscription, or of one that is made again:
// then anything may have changed meanwhile, and the sender gets no acknowledgement.
func newForwarder(req *Request, again bool, end context.CancelCauseFunc) *forwarder {
	return &forwarder{req: req, end: end, wake: make(chan struct{}, 1), acknowledged: again, missed: again}
}

// receive takes a notification of the server, and reports whether it is one of those that
// belong to subscriptions.
func (f *forwarder) receive(note *Request) bool {
	if note.Method == NotificationAcknowledged {
		var p AcknowledgedParams
		if note.Decode(&p) == nil {
			f.accept(&p.Notifications)
		}
		return true
	}
	c, ok := parseChange(note.Method, note.Params())
	if ok {
		f.add(c)
	}
	return ok
}

// accept notes the first acknowledgement.
func (f *forwarder) accept(filter *SubscriptionFilter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.accepted == nil {
		f.accepted = filter
		wake(f.wake)
	}
}

// add adds a change. If more changes wait than may, everything counts as changed.
func (f *forwarder) add(c Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending) >= maxUpdates || f.bytes+len(c.URI) > maxNoteBytes {
		f.missed = true
	} else {
		f.pending.add(c)
		f.bytes += len(c.URI)
	}
	wake(f.wake)
}

// send sends what waits. If that fails, the sender is gone.
func (f *forwarder) send(ctx context.Context) {
	acknowledgement, changes := f.drain()
	if acknowledgement != nil {
		_ = f.req.sendAcknowledgement(ctx, *acknowledgement)
	}
	_ = f.req.sendChanges(ctx, changes)
}

// drain returns what waits, and removes it. The acknowledgement is nil after the first
// time.
func (f *forwarder) drain() (acknowledgement *SubscriptionFilter, changes changeSet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.accepted == nil {
		return nil, nil
	}
	if !f.acknowledged {
		acknowledgement, f.acknowledged = f.accepted, true
	}
	changes = f.pending
	if f.missed {
		changes = everythingIn(f.accepted)
		maps.Copy(changes, f.pending)
	}
	f.pending, f.bytes, f.missed = nil, 0, false
	return acknowledgement, changes
}

// isAccepted reports whether the server has acknowledged the subscription.
func (f *forwarder) isAccepted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.accepted != nil
}

func (c *Conn) addForwarder(id ID, f *forwarder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forwarders[id] = f
}

func (c *Conn) removeForwarder(id ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.forwarders, id)
}

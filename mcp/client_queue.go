// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"slices"
	"sync"
)

// A serialQueue calls functions one after the other, in a goroutine that runs only while
// functions wait. What may wait is bounded by a number of calls and by a number of bytes
// that they refer to, of which a single call may exceed the latter.
type serialQueue struct {
	maxCalls   int
	maxBytes   int         // 0 means no bound
	dropOldest bool        // a full queue drops the oldest call, otherwise the one that is added
	onDrop     func()      // called with the lock held when the queue begins to drop; may be nil
	onPanic    func(v any) // called with the value of each panic of a function

	mu       sync.Mutex
	waiting  []queuedCall
	bytes    int
	running  bool      // the goroutine runs
	stopped  sync.Cond // signals that running became false; created by newSerialQueue
	held     bool      // calls wait for start
	dropping bool      // calls were dropped since the last one ran
	closed   bool
}

type queuedCall struct {
	fn   func()
	size int
}

// newSerialQueue returns a queue. Options are set before it is used.
func newSerialQueue(maxCalls int, onPanic func(v any)) *serialQueue {
	q := &serialQueue{maxCalls: maxCalls, onPanic: onPanic}
	q.stopped.L = &q.mu
	return q
}

// add adds a call that refers to size bytes, unless the queue is full or closed.
func (q *serialQueue) add(size int, fn func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	for q.isFullFor(size) {
		if !q.dropping && q.onDrop != nil {
			q.onDrop()
		}
		q.dropping = true
		if !q.dropOldest {
			return
		}
		q.removeFirst()
	}
	q.waiting = append(q.waiting, queuedCall{fn, size})
	q.bytes += size
	q.run()
}

func (q *serialQueue) isFullFor(size int) bool {
	return len(q.waiting) >= q.maxCalls || q.maxBytes > 0 && len(q.waiting) > 0 && q.bytes+size > q.maxBytes
}

func (q *serialQueue) removeFirst() queuedCall {
	first := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	q.bytes -= first.size
	return first
}

// start begins to run the calls of a queue that was held.
func (q *serialQueue) start() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = false
	q.run()
}

// run starts the goroutine if it is needed. The lock must be held.
func (q *serialQueue) run() {
	if q.running || q.held || len(q.waiting) == 0 {
		return
	}
	q.running = true
	go func() {
		for fn := q.next(); fn != nil; fn = q.next() {
			q.call(fn)
		}
	}()
}

// next returns the next function to call, or nil if the goroutine has to end.
func (q *serialQueue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running, q.waiting = false, nil
		q.stopped.Broadcast()
		return nil
	}
	q.dropping = false
	return q.removeFirst().fn
}

// call calls fn. A panic must not end the process.
func (q *serialQueue) call(fn func()) {
	defer func() {
		if v := recover(); v != nil {
			q.onPanic(v)
		}
	}()
	fn()
}

// wait waits until no call runs or waits.
func (q *serialQueue) wait() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.running {
		q.stopped.Wait()
	}
}

// finish closes the queue after the calls that wait have run.
func (q *serialQueue) finish() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wait()
}

// close closes the queue and drops the calls that wait. It does not wait for the call that
// runs, which may be the caller.
func (q *serialQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.waiting = true, nil
}

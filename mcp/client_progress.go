// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"strings"

	"github.com/go-psi/psi/internal/callclock"
	"github.com/go-psi/psi/mcp/transport"
)

type progressKey struct{}

// WithProgress returns a context for one call whose progress is passed to fn: in order, in
// a goroutine other than the one that reads, and not after the call has returned.
func WithProgress(ctx context.Context, fn func(p *ProgressParams)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// A callListener receives the progress notifications and the log messages of one call.
type callListener struct {
	progress func(*ProgressParams)       // nil if only the clock needs progress
	log      func(*LoggingMessageParams) // nil if no log messages are wanted
	ownsLog  bool                        // log is called instead of ClientOptions.Log
	clock    *callclock.Clock            // nil if the call has no timeout
	queue    *serialQueue                // calls progress and log
}

// listenTo adds a listener for a call whose progress or log messages are wanted: by the
// caller ([WithProgress], [WithLog]), by the sender of a request that is forwarded, or by the
// clock. It returns the progress token of the call, which is zero if there is no listener.
// Stop removes the listener and waits for its functions.
func (c *Conn) listenTo(ctx context.Context, req *Request, id ID) (token ID, stop func()) {
	progress, clock, log := progressOf(ctx, req), callclock.FromContext(ctx), c.logListener(ctx, req)
	if progress == nil && clock == nil && log == nil {
		return ID{}, func() {}
	}
	l := &callListener{progress: progress, log: log, ownsLog: callLogOf(ctx).fn != nil, clock: clock, queue: newNoteQueue(c)}
	l.queue.dropOldest = true
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners[id] = l
	return id, func() {
		c.mu.Lock()
		delete(c.listeners, id)
		c.mu.Unlock()
		l.queue.finish()
	}
}

// progressOf returns the function for the progress of a request, nil if it is not wanted.
func progressOf(ctx context.Context, req *Request) func(*ProgressParams) {
	if fn, ok := ctx.Value(progressKey{}).(func(*ProgressParams)); ok {
		return fn
	}
	if req.ProgressToken().IsZero() {
		return nil
	}
	return func(p *ProgressParams) { req.notifyProgress(ctx, p) }
}

// receiveProgress passes a progress notification to the listener of its call.
func (c *Conn) receiveProgress(note *Request) {
	p := new(ProgressParams)
	if note.Decode(p) != nil {
		return
	}
	l := c.listenerOf(p.ProgressToken)
	if l == nil {
		return
	}
	if l.clock != nil {
		l.clock.Reset()
	}
	if l.progress != nil {
		l.queue.add(len(note.Params()), func() { l.progress(p) })
	}
}

// listenerOf returns the listener of a call, nil if there is none. Some servers write its
// token, an integer, as a string.
func (c *Conn) listenerOf(token ID) *callListener {
	integer, _ := transport.ParseID([]byte(strings.Trim(token.String(), `"`)))
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listeners[integer.Canonical()]
}

// withIncreasingProgress returns a context whose progress function is called only for
// progress that increases. A call that the server asks about is sent again, and its
// handler then reports progress from the start.
func withIncreasingProgress(ctx context.Context) context.Context {
	fn, _ := ctx.Value(progressKey{}).(func(*ProgressParams))
	if fn == nil {
		return ctx
	}
	var last *float64 // needs no lock: the calls do not overlap
	return WithProgress(ctx, func(p *ProgressParams) {
		if last != nil && p.Progress <= *last {
			return
		}
		last = &p.Progress
		fn(p)
	})
}

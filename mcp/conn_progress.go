// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"log/slog"
	"sync"
)

type progressKey struct{}

// WithProgress returns a context for one call whose progress goes to fn: in order,
// off the goroutine that reads, and not after the call has returned.
func WithProgress(ctx context.Context, fn func(p *ProgressParams)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// progressSink takes the progress of one call, and the log messages about it.
type progressSink struct {
	progress func(*ProgressParams) // nil if nobody wants to know but the clock
	log      func(*LogParams)      // nil if nobody wants messages
	clock    *callClock            // nil if the call has no bound
	logger   *slog.Logger          // gets the panics of the functions

	mu      sync.Mutex
	waiting []func()
	running bool
	over    bool // the call has returned: nothing more is told
	idle    *sync.Cond
}

// maxProgress is how much may wait for the functions of a call; what is newer counts.
const maxProgress = 256

// expectProgress gives a call a token if somebody wants its progress or its messages:
// the caller, by [WithProgress], the sender of a request that was received, or the
// clock.
func (c *Conn) expectProgress(ctx context.Context, req *Request, id ID) (ID, func()) {
	s := &progressSink{clock: clockFrom(ctx), logger: c.client.opts.Logger}
	s.progress, _ = ctx.Value(progressKey{}).(func(*ProgressParams))
	if s.progress == nil && !req.ProgressToken().IsZero() {
		s.progress = func(p *ProgressParams) { req.notifyProgress(ctx, p) }
	}
	s.log, _ = ctx.Value(logKey{}).(func(*LogParams))
	if s.log == nil && req.LogLevel() != "" {
		s.log = func(p *LogParams) { req.notifyLog(ctx, p) }
	}
	if s.progress == nil && s.log == nil && s.clock == nil {
		return ID{}, func() {}
	}
	s.idle = sync.NewCond(&s.mu)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress[id] = s
	return id, func() {
		c.mu.Lock()
		delete(c.progress, id)
		c.mu.Unlock()
		s.close()
	}
}

// progressed takes a progress notification.
func (c *Conn) progressed(note *Request) {
	p := new(ProgressParams)
	if note.Decode(p) != nil {
		return
	}
	s := c.sinkOf(p.ProgressToken)
	if s == nil {
		return
	}
	if s.clock != nil {
		s.clock.reset()
	}
	if s.progress != nil {
		s.add(func() { s.progress(p) })
	}
}

// sinkOf returns the sink of a call, nil if there is none.
func (c *Conn) sinkOf(id ID) *progressSink {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.progress[id.Canonical()]
}

func (s *progressSink) add(tell func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if len(s.waiting) >= maxProgress {
		s.waiting = s.waiting[1:]
	}
	s.waiting = append(s.waiting, tell)
	if !s.running {
		s.running = true
		go s.run()
	}
}

func (s *progressSink) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) > 0 {
		tell := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.mu.Unlock()
		s.call(tell)
		s.mu.Lock()
	}
	s.running = false
	s.idle.Broadcast()
}

// call keeps a panic of a function from ending the process.
func (s *progressSink) call(tell func()) {
	defer func() {
		if v := recover(); v != nil {
			_ = panicked(context.Background(), newRequest(), v, s.logger)
		}
	}()
	tell()
}

// settleProgress waits until the progress of a call that came so far has been told.
func (c *Conn) settleProgress(id ID) {
	if s := c.sinkOf(id); s != nil {
		s.drain()
	}
}

// increasing drops progress that is no progress. Every time a question has been
// answered the handler begins anew, and so does what it reports.
func increasing(ctx context.Context) context.Context {
	fn, _ := ctx.Value(progressKey{}).(func(*ProgressParams))
	if fn == nil {
		return ctx
	}
	var last *float64 // calls do not overlap
	return WithProgress(ctx, func(p *ProgressParams) {
		if last != nil && p.Progress <= *last {
			return
		}
		last = &p.Progress
		fn(p)
	})
}

// close lets nothing more come, and waits for what came.
func (s *progressSink) close() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.drain()
}

// drain waits until everything that came has been told.
func (s *progressSink) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.running {
		s.idle.Wait()
	}
}

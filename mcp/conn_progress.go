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

// progressSink takes the progress of one call.
type progressSink struct {
	fn     func(*ProgressParams) // nil if nobody wants to know but the clock
	clock  *callClock            // nil if the call has no bound
	logger *slog.Logger          // gets the panics of fn

	mu      sync.Mutex
	waiting []*ProgressParams
	running bool
	over    bool // the call has returned: nothing more is told
	idle    *sync.Cond
}

// maxProgress is how much progress may wait for a function; what is newer counts.
const maxProgress = 256

// expectProgress gives a call a token if somebody wants its progress: the caller,
// by [WithProgress], the sender of a request that was received, or the clock.
func (c *Conn) expectProgress(ctx context.Context, req *Request, id ID) (ID, func()) {
	clock := clockFrom(ctx)
	fn, _ := ctx.Value(progressKey{}).(func(*ProgressParams))
	if token := req.ProgressToken(); fn == nil && !token.IsZero() {
		fn = func(p *ProgressParams) {
			forwarded := *p
			forwarded.ProgressToken = token
			_ = req.Notify(ctx, NotificationProgress, &forwarded) // its sender may not listen
		}
	}
	if fn == nil && clock == nil {
		return ID{}, func() {}
	}
	s := &progressSink{fn: fn, clock: clock, logger: c.client.opts.Logger}
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
	c.mu.Lock()
	s := c.progress[p.ProgressToken.byValue()]
	c.mu.Unlock()
	if s == nil {
		return
	}
	if s.clock != nil {
		s.clock.reset()
	}
	if s.fn != nil {
		s.add(p)
	}
}

func (s *progressSink) add(p *ProgressParams) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if len(s.waiting) >= maxProgress {
		s.waiting = s.waiting[1:]
	}
	s.waiting = append(s.waiting, p)
	if !s.running {
		s.running = true
		go s.run()
	}
}

func (s *progressSink) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) > 0 {
		p := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.mu.Unlock()
		s.tell(p)
		s.mu.Lock()
	}
	s.running = false
	s.idle.Broadcast()
}

// tell keeps a panic of the function from ending the process.
func (s *progressSink) tell(p *ProgressParams) {
	defer func() {
		if v := recover(); v != nil {
			_ = panicked(context.Background(), newRequest(), v, s.logger)
		}
	}()
	s.fn(p)
}

// settleProgress waits until the progress of a call that came so far has been told.
func (c *Conn) settleProgress(id ID) {
	c.mu.Lock()
	s := c.progress[id]
	c.mu.Unlock()
	if s != nil {
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

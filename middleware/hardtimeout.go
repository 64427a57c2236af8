// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp"
)

// HardTimeoutOptions configure [HardTimeout]. Nil means the zero HardTimeoutOptions.
type HardTimeoutOptions struct {
	// MaxAbandoned is how many handlers may run on after their deadline. As long as
	// there are so many, requests are refused with [mcp.RateLimited]; those that
	// were admitted before may still exceed it. 0 means 256.
	MaxAbandoned int
	// Logger gets the panics of handlers that run on. Nil means slog.Default.
	Logger *slog.Logger
}

// HardTimeout is [Timeout] for handlers that do not look at their context: after d
// the request is answered with an error of [mcp.CodeTimeout] whether the handler
// returns or not. Its context is done then, its outcome is dropped, and so is what
// it has to notify, but nothing can stop it: it goes on and holds what it holds. A
// [Concurrency] inside of HardTimeout counts such handlers, one outside does not.
//
// Every handler runs on a goroutine of its own, with a copy of the request; prefer
// Timeout where it does. HardTimeout is for what a [mcp.Mux] serves, by Use or With,
// not for the mux as a whole. What handlers take from their context beyond the
// request, such as that of HTTP, they may find finished.
//
// Subscriptions ([mcp.MethodListen]) have no deadline. HardTimeout panics if d is
// not positive.
func HardTimeout(d time.Duration, opts *HardTimeoutOptions) mcp.Middleware {
	mustBePositive("HardTimeout: the time", d)
	t := &hardTimeout{deadline: &deadline{d}, max: 256}
	if opts != nil {
		t.logger = opts.Logger
		if opts.MaxAbandoned > 0 {
			t.max = int64(opts.MaxAbandoned)
		}
	}
	if t.logger == nil {
		t.logger = slog.Default()
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListen {
				return next.ServeMCP(ctx, req)
			}
			return t.serve(ctx, next, req)
		})
	}
}

type hardTimeout struct {
	deadline  *deadline
	max       int64
	logger    *slog.Logger
	abandoned atomic.Int64
}

func (t *hardTimeout) serve(ctx context.Context, next mcp.Handler, req *mcp.Request) (mcp.Result, error) {
	if t.abandoned.Load() >= t.max {
		return nil, mcp.RateLimited(t.deadline.after, "%d requests that took too long are still being served", t.max)
	}
	own, err := ownRequest(req)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(t.deadline.after)
	defer timer.Stop()
	r := &run{limits: t, done: make(chan ended, 1)}
	ctx, cancel := context.WithTimeoutCause(ctx, t.deadline.after, t.deadline)
	go func() {
		defer cancel()
		r.serve(ctx, next, own)
	}()
	select {
	case e := <-r.done:
		return t.judge(ctx, e)
	case <-timer.C:
		<-ctx.Done() // it is time for that, too
	}
	if r.abandon() {
		return nil, t.deadline.timedOut()
	}
	return t.judge(ctx, <-r.done)
}

func (t *hardTimeout) judge(ctx context.Context, e ended) (mcp.Result, error) {
	res, err := e.outcome()
	return t.deadline.judge(ctx, res, err)
}

// run is one handler that may be abandoned.
type run struct {
	limits  *hardTimeout
	settled atomic.Bool // by whoever is first: the handler's end or its deadline
	done    chan ended
}

func (r *run) serve(ctx context.Context, next mcp.Handler, req *mcp.Request) {
	var e ended
	defer func() { // also if the handler ends the goroutine
		if r.settled.CompareAndSwap(false, true) {
			r.done <- e
			return
		}
		r.limits.abandoned.Add(-1)
		if e.panicked != nil {
			_ = recovered(ctx, r.limits.logger, req, e.panicked) // nobody waits for the error
		}
	}()
	serveApart(ctx, next, req, &e)
}

// abandon reports whether the handler has not ended yet. It is then on its own.
func (r *run) abandon() bool {
	r.limits.abandoned.Add(1) // before the handler can take it back
	if r.settled.CompareAndSwap(false, true) {
		return true
	}
	r.limits.abandoned.Add(-1)
	return false
}

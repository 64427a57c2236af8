// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp"
)

// Concurrency serves at most n requests at once. Up to queue more wait, in the
// order in which they came, until it is their turn or their context is done; 0 means
// that none waits. All others are refused with [mcp.RateLimited].
//
// The bound is that of the Middleware: used in several places, it holds for all of
// them together. A handler must not call, under the bound, what is under the same
// bound: it would wait for itself.
//
// Subscriptions ([mcp.MethodListen]), which last, and notifications, which nobody
// could be told to send again, pass and do not count. Concurrency panics if n is not
// positive or queue is negative.
func Concurrency(n, queue int) mcp.Middleware {
	mustBePositive("Concurrency: n", n)
	if queue < 0 {
		panic(fmt.Sprintf("middleware.Concurrency: the queue must not be negative, but is %d", queue))
	}
	g := &gate{places: make(chan struct{}, n), queue: int64(queue)}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListen || isNotification(req) {
				return next.ServeMCP(ctx, req)
			}
			if err := g.enter(ctx); err != nil {
				return nil, err
			}
			defer g.leave()
			return next.ServeMCP(ctx, req)
		})
	}
}

// gate has a place for each request that is being served.
type gate struct {
	places  chan struct{}
	queue   int64
	waiting atomic.Int64
}

// busyFor is after what time a caller who was refused may try again. How long it
// takes until there is a place nobody knows.
const busyFor = time.Second

func (g *gate) enter(ctx context.Context) error {
	select {
	case g.places <- struct{}{}:
		return nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > g.queue {
		return mcp.RateLimited(busyFor, "too many requests are being served")
	}
	select {
	case g.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *gate) leave() { <-g.places }

// isNotification reports whether req is a notification that was received. Requests
// that a client is about to send have no id yet, either.
func isNotification(req *mcp.Request) bool {
	return req.IsNotification() && strings.HasPrefix(req.Method, "notifications/")
}

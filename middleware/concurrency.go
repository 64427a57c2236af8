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

// Concurrency serves at most n requests concurrently. Up to queue more requests wait, in
// order of arrival, until a slot is free or their context is done; 0 means that no request
// waits. All other requests fail with [mcp.NewRateLimitedError].
//
// The limit belongs to the returned Middleware: if it is used in several places, they share
// it. A handler under the limit must not call another handler under the same limit, or both
// can block forever.
//
// Subscriptions ([mcp.MethodListen]), which are long-lived, and notifications, which have
// no response to report an error in, are not limited. Concurrency panics if n is not
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
			if err := g.acquire(ctx); err != nil {
				return nil, err
			}
			defer g.release()
			return next.ServeMCP(ctx, req)
		})
	}
}

// A gate limits the number of requests that are served concurrently.
type gate struct {
	places  chan struct{}
	queue   int64
	waiting atomic.Int64
}

// busyFor is the retry delay for rejected requests. It is a guess, because it is unknown
// when a slot will be free.
const busyFor = time.Second

func (g *gate) acquire(ctx context.Context) error {
	select {
	case g.places <- struct{}{}:
		return nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > g.queue {
		return mcp.NewRateLimitedError(busyFor, "too many requests are being served")
	}
	select {
	case g.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *gate) release() { <-g.places }

// isNotification reports whether req is a received notification. The absence of an ID is
// not enough, because requests that a client is about to send have no ID yet either.
func isNotification(req *mcp.Request) bool {
	return req.IsNotification() && strings.HasPrefix(req.Method, "notifications/")
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/go-psi/psi/mcp"
)

// Singleflight sends a client's request once for all who ask for the same at the
// same time: the same method with the same parameters, on behalf of the same
// principal. It shares what only reads, as [Retry] repeats it, and never calls of
// tools, subscriptions, or what carries answers to a question or asks for progress by
// a token.
//
// The shared request has the values of the context of whoever asked first, but ends
// only when all who wait have left: one who is cancelled does not take the answer from
// the others. It reports no progress. The result is shared, and must not be changed,
// as no result may.
//
// An answer may have been under way when its request was made. Singleflight belongs inside
// of [Cache], which keeps requests made after a change from such answers, and outside of
// [Retry].
func Singleflight() mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		f := &flights{next: next, flying: map[flightKey]*flight{}} // of one server
		return mcp.HandlerFunc(f.serve)
	}
}

type flightKey struct {
	method, version, owner, params string
	session                        *mcp.Session // of a client of the legacy era, whose capabilities it has
	changes                        any          // that a Cache outside has seen
}

// flights are the requests that are shared now. There are no more of them than
// callers who wait.
type flights struct {
	next mcp.Handler

	mu     sync.Mutex
	flying map[flightKey]*flight
}

// flight is one shared request.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when end is there
	end    ended

	// Guarded by the mutex of flights.
	waiting int
	asking  bool // somebody has the question that is the outcome
}

func (f *flights) serve(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if !onlyReads(req.Method) || !req.ProgressToken().IsZero() || answers(req) {
		return f.next.ServeMCP(ctx, req)
	}
	key := flightKey{req.Method, req.Version(), ownerOf(ctx, req), asked(req), mcp.SessionFrom(ctx), ctx.Value(changesKey{})}
	one, err := f.join(ctx, key, req)
	if err != nil {
		return nil, err
	}
	select {
	case <-one.done:
		if f.isAskedAlready(one) {
			return f.next.ServeMCP(ctx, req)
		}
		return one.end.outcome()
	case <-ctx.Done():
		f.leave(key, one)
		return nil, context.Cause(ctx)
	}
}

// traceMembers are the members of _meta that say which trace a request belongs to.
var traceMembers = []string{"traceparent", "tracestate", "baggage"}

// asked is what a request asks: its params without the trace, in which everybody
// differs.
func asked(req *mcp.Request) string {
	meta := req.Meta()
	size := len(meta)
	for _, member := range traceMembers {
		delete(meta, member)
	}
	if len(meta) == size {
		return string(req.Params())
	}
	untraced, err := req.WithParams(map[string]mcp.Meta{"_meta": meta})
	var all mcp.Extra
	if err != nil || req.Decode(&all) != nil {
		return string(req.Params())
	}
	delete(all, "_meta")
	rest, err := json.Marshal(all)
	if err != nil {
		return string(req.Params())
	}
	return string(untraced.Params()) + string(rest)
}

// join takes part in a flight, which it begins if there is none.
func (f *flights) join(ctx context.Context, key flightKey, req *mcp.Request) (*flight, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.flying[key]; one != nil {
		one.waiting++
		return one, nil
	}
	own, err := ownRequest(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(mcp.WithProgress(context.WithoutCancel(ctx), nil))
	one := &flight{waiting: 1, cancel: cancel, done: make(chan struct{})}
	f.flying[key] = one
	go f.fly(ctx, key, one, own)
	return one, nil
}

func (f *flights) fly(ctx context.Context, key flightKey, one *flight, req *mcp.Request) {
	defer func() {
		one.cancel()
		f.forget(key, one)
		close(one.done)
	}()
	serveApart(ctx, f.next, req, &one.end)
}

// isAskedAlready reports whether the outcome is a question that somebody else
// answers. It may be good for one answer only.
func (f *flights) isAskedAlready(one *flight) bool {
	if _, ok := one.end.res.(*mcp.InputRequired); !ok {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	already := one.asking
	one.asking = true
	return already
}

func (f *flights) forget(key flightKey, one *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flying[key] == one {
		delete(f.flying, key)
	}
}

// leave cancels a flight that nobody waits for any more; who comes now begins
// another one.
func (f *flights) leave(key flightKey, one *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.waiting--; one.waiting > 0 {
		return
	}
	one.cancel()
	if f.flying[key] == one {
		delete(f.flying, key)
	}
}

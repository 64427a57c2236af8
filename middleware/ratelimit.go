// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/lru"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/mcp"
)

// A Limiter decides who may go on. It is implemented by [TokenBucket], and by
// whatever several replicas share. It is safe for concurrent use.
type Limiter interface {
	// Take takes one of what is left to key. It returns 0 if there was one, and
	// otherwise, taking nothing, after what time, which is positive, there may be
	// one. That is one step: of two calls at once, only one gets the last. An error
	// means that it is not known; the request then fails. A Limiter that would
	// rather let requests pass while its store is away returns 0 and no error.
	//
	// Keys hold what clients chose, of any length.
	Take(ctx context.Context, key string) (retryAfter time.Duration, err error)
}

// A KeyFunc says under which key a request is counted. The empty key is that of
// requests that are not limited.
type KeyFunc func(ctx context.Context, req *mcp.Request) string

// RateLimit refuses requests of which limiter says that there are too many under
// their key. The error is [mcp.RateLimited], and tells the client when to try again.
// What key is, who is limited together, has no default: see [ByPrincipal], [ByTool],
// [ByAddress] and [ByAll].
//
// Every request counts: lists, the first request of a connection, the opening of a
// subscription, and each round of a call that asks. Notifications do not, since
// nobody could be told to send one again.
//
// Several limits, such as one of each caller and one of a dear tool, are several
// RateLimits. It panics if key or limiter is nil.
func RateLimit(key KeyFunc, limiter Limiter) mcp.Middleware {
	if key == nil || limiter == nil {
		panic("middleware.RateLimit: the key and the limiter must not be nil")
	}
	return func(next mcp.Handler) mcp.Handler {
		l := &rateLimit{next: next, key: key, limiter: limiter, known: lru.New[called, struct{}](maxTools)}
		return mcp.HandlerFunc(l.serve)
	}
}

type rateLimit struct {
	next    mcp.Handler
	key     KeyFunc
	limiter Limiter

	mu    sync.Mutex
	known *lru.Map[called, struct{}] // what is known to exist
}

func (l *rateLimit) serve(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if isNotification(req) {
		return l.next.ServeMCP(ctx, req)
	}
	what := calledBy(req)
	known := l.knows(what)
	k := l.keyOf(ctx, req, known)
	if k != "" {
		if err := l.take(ctx, k); err != nil {
			return nil, err
		}
	}
	res, err := l.next.ServeMCP(ctx, req)
	if err != nil {
		return nil, err
	}
	if list, ok := res.(*mcp.ListToolsResult); ok && list != nil {
		l.learn(toolsOf(list)...)
	}
	if !known {
		l.learn(what)
		if own := l.keyOf(ctx, req, true); own != k && own != "" {
			_ = l.take(ctx, own) // there is a tool of that name, which has been called once
		}
	}
	return res, nil
}

func (l *rateLimit) keyOf(ctx context.Context, req *mcp.Request, known bool) string {
	if !known {
		ctx = context.WithValue(ctx, unknownKey{}, true)
	}
	return l.key(ctx, req)
}

func (l *rateLimit) take(ctx context.Context, key string) error {
	after, err := l.limiter.Take(ctx, key)
	switch {
	case err != nil:
		return &mcp.Error{Code: mcp.CodeInternalError, Message: "the rate limit could not be checked", Cause: fmt.Errorf("middleware.RateLimit: %w", err)}
	case after > 0:
		return mcp.RateLimited(after, "too many requests; try again in %v", roundUp(after))
	}
	return nil
}

// unknownKey marks the context of a KeyFunc if nothing has shown that the tool, or the
// method, exists.
type unknownKey struct{}

// called is a tool or, without one, a method.
type called struct{ method, tool string }

func calledBy(req *mcp.Request) called {
	if req.Method == mcp.MethodCallTool {
		return called{req.Method, bounded(req.Name())}
	}
	return called{method: bounded(req.Method)}
}

func toolsOf(list *mcp.ListToolsResult) []called {
	var tools []called
	for _, t := range list.Tools {
		if t != nil {
			tools = append(tools, called{mcp.MethodCallTool, bounded(t.Name)})
		}
	}
	return tools
}

func (l *rateLimit) knows(what called) bool {
	if what.tool == "" && mcp.IsMethod(what.method) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.known.Get(what)
	return known
}

// learn notes what exists: what has answered, and the tools that are listed.
func (l *rateLimit) learn(all ...called) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, what := range all {
		l.known.Put(what, struct{}{})
	}
}

// roundUp makes a duration readable without promising too much.
func roundUp(d time.Duration) time.Duration {
	unit := time.Millisecond
	if d > time.Second {
		unit = time.Second
	}
	return (d + unit - 1).Truncate(unit)
}

// ByPrincipal is the caller. All those whom nobody authenticated are one.
func ByPrincipal(ctx context.Context, req *mcp.Request) string { return ownerOf(ctx, req) }

// ByTool is the name of the tool that is called, and otherwise the method: all tools
// have a limit of their own, for all callers together, and so has every method. Clients
// choose names, so all tools and methods that are not known to exist share one limit. The
// [RateLimit] learns of a tool when it is listed or answers, and of a method that is not
// MCP's when it answers; the first call counts under both then.
func ByTool(ctx context.Context, req *mcp.Request) string {
	switch {
	case ctx.Value(unknownKey{}) != nil:
		return "?"
	case req.Method == mcp.MethodCallTool:
		return "tool " + req.Name()
	}
	return req.Method
}

// ByAddress is the network address of the caller, as address knows it, with or
// without a port. IPv6 addresses count by their first 64 bits, which is what one
// customer has. All those whose address is not known are one, as they are on stdio.
//
// Behind a reverse proxy the address of the connection is that of the proxy, and a
// header with the caller's is true only if the proxy wrote all of it. ByAddress panics
// if address is nil.
//
//	middleware.ByAddress(func(ctx context.Context) string {
//		if r := mcphttp.RequestFromContext(ctx); r != nil {
//			return r.RemoteAddr
//		}
//		return ""
//	})
func ByAddress(address func(ctx context.Context) string) KeyFunc {
	if address == nil {
		panic("middleware.ByAddress: the function must not be nil")
	}
	return func(ctx context.Context, _ *mcp.Request) string { return "at " + network.CallerPrefix(address(ctx)) }
}

// ByAll limits each combination of keys by itself, such as each tool for each
// principal. It is empty, and the request not limited, if any of the keys is. ByAll
// panics if there are no keys, or one is nil.
func ByAll(keys ...KeyFunc) KeyFunc {
	if len(keys) == 0 || slices.ContainsFunc(keys, func(key KeyFunc) bool { return key == nil }) {
		panic("middleware.ByAll: there must be keys, and none that is nil")
	}
	keys = slices.Clone(keys)
	return func(ctx context.Context, req *mcp.Request) string {
		parts := make([]string, len(keys))
		for i, key := range keys {
			if parts[i] = key(ctx, req); parts[i] == "" {
				return ""
			}
			if i < len(keys)-1 { // lengths keep parts apart whatever is in them
				parts[i] = fmt.Sprintf("%d:%s", len(parts[i]), parts[i])
			}
		}
		return strings.Join(parts, "")
	}
}

// TokenBucketOptions configure a [TokenBucket]. Nil means the zero
// TokenBucketOptions.
type TokenBucketOptions struct {
	// Burst is how many may come at once after a pause. 0 means as many as come in
	// the whole time.
	Burst int
	// MaxKeys is how many keys are remembered at most. A key whose bucket is full again
	// need not be. If there are more, those that have taken the least are forgotten, and
	// keys that are not known begin with as little as these had left: to be forgotten is
	// no gain. 0 means 65536.
	MaxKeys int
}

// A TokenBucket is a [Limiter] in the memory of one process. It is safe for
// concurrent use.
type TokenBucket struct {
	each  time.Duration // in which one comes back
	depth time.Duration // in which an empty bucket is full
	keys  int

	mu    sync.Mutex
	full  map[string]time.Time // when the bucket of a key is full again
	floor time.Time            // when those of keys are that are not known
}

// NewTokenBucket makes a limiter that lets through n requests in each span of time,
// evenly spread but for bursts; opts may be nil. It panics if n or the time is not
// positive.
func NewTokenBucket(n int, in time.Duration, opts *TokenBucketOptions) *TokenBucket {
	mustBePositive("NewTokenBucket: the number", n)
	mustBePositive("NewTokenBucket: the time", in)
	b := &TokenBucket{each: max(1, in/time.Duration(n)), keys: 1 << 16, full: map[string]time.Time{}}
	burst := n
	if opts != nil && opts.Burst > 0 {
		burst = opts.Burst
	}
	if opts != nil && opts.MaxKeys > 0 {
		b.keys = opts.MaxKeys
	}
	b.depth = b.each * time.Duration(min(int64(burst), math.MaxInt64/2/int64(b.each)))
	return b
}

// Take implements [Limiter]. It returns no error.
func (b *TokenBucket) Take(_ context.Context, key string) (time.Duration, error) {
	key = bounded(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	full, known := b.full[key]
	if !known {
		full = b.floor
	}
	if full.Before(now) {
		full = now
	}
	full = full.Add(b.each)
	if wait := full.Sub(now) - b.depth; wait > 0 {
		return wait, nil
	}
	if !known && len(b.full) >= b.keys {
		b.makeRoomLocked(now)
	}
	b.full[key] = full
	return 0, nil
}

// makeRoomLocked forgets the keys whose buckets are full, and a sixteenth of all of those
// that have taken the least, so that the next keys find room without a search.
func (b *TokenBucket) makeRoomLocked(now time.Time) {
	maps.DeleteFunc(b.full, func(_ string, full time.Time) bool { return !full.After(now) })
	excess := len(b.full) - (b.keys - max(1, b.keys/16))
	if excess <= 0 {
		return
	}
	times := slices.SortedFunc(maps.Values(b.full), time.Time.Compare)
	b.floor = times[excess-1]
	maps.DeleteFunc(b.full, func(_ string, full time.Time) bool { return !full.After(b.floor) })
}

// maxKey is how long a key may be that is remembered as it is.
const maxKey = 128

// bounded keeps what clients chose from filling the memory.
func bounded(key string) string {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return string(sum[:])
}

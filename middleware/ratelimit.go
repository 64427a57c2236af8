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
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/mcp"
)

// A Limiter decides whether a request may proceed. [TokenBucket] implements it for one
// process, and [SharedBucket] for all replicas together. A Limiter must be safe for
// concurrent use.
type Limiter interface {
	// Take takes one token for key. If there is one, it returns 0. Otherwise it takes
	// nothing and returns a positive duration after which a token may be available. It must
	// be atomic: of two concurrent calls, only one gets the last token. If it returns an
	// error, the request fails. To let requests pass while a store is unavailable, return 0
	// and no error.
	//
	// Keys contain text from clients, of any length.
	Take(ctx context.Context, key string) (retryAfter time.Duration, err error)
}

// A KeyFunc returns the key under which a request is counted. Requests with an empty key
// are not limited.
type KeyFunc func(ctx context.Context, req *mcp.Request) string

// RateLimit rejects a request if limiter has no token left for its key. The error is
// [mcp.NewRateLimitedError], which tells the client when to retry. There is no default key:
// see [ByPrincipal], [ByTool], [ByAddress] and [ByAll].
//
// Every request counts: lists, the first request of a connection, the opening of a
// subscription, and each round of a call that asks questions. Notifications do not count,
// because they have no response to report an error in.
//
// For several limits, such as one per caller and one for an expensive tool, use RateLimit
// several times. It panics if key or limiter is nil.
func RateLimit(key KeyFunc, limiter Limiter) mcp.Middleware {
	if key == nil || limiter == nil {
		panic("middleware.RateLimit: the key and the limiter must not be nil")
	}
	return func(next mcp.Handler) mcp.Handler {
		l := &rateLimit{next: next, key: key, limiter: limiter, known: lru.New[operation, struct{}](maxTools)}
		return mcp.HandlerFunc(l.serve)
	}
}

type rateLimit struct {
	next    mcp.Handler
	key     KeyFunc
	limiter Limiter

	mu    sync.Mutex
	known *lru.Map[operation, struct{}] // operations known to exist
}

func (l *rateLimit) serve(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if isNotification(req) {
		return l.next.ServeMCP(ctx, req)
	}
	what := operationOf(req)
	known := l.knows(what)
	k := l.keyOf(ctx, req, known)
	if k != "" {
		if err := l.takeToken(ctx, k); err != nil {
			return nil, err
		}
	}
	res, err := l.next.ServeMCP(ctx, req)
	if err != nil {
		return nil, err
	}
	if list, ok := res.(*mcp.ListToolsResult); ok && list != nil {
		l.markKnown(toolsOf(list)...)
	}
	if !known {
		l.markKnown(what)
		if own := l.keyOf(ctx, req, true); own != k && own != "" {
			_ = l.takeToken(ctx, own) // the tool exists, and this was its first call
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

func (l *rateLimit) takeToken(ctx context.Context, key string) error {
	after, err := l.limiter.Take(ctx, key)
	switch {
	case err != nil:
		return &mcp.Error{Code: mcp.CodeInternalError, Message: "the rate limit could not be checked", Cause: fmt.Errorf("middleware.RateLimit: %w", err)}
	case after > 0:
		return mcp.NewRateLimitedError(after, "too many requests; try again in %v", roundUp(after))
	}
	return nil
}

// unknownKey marks the context passed to a KeyFunc if the tool or method is not known to
// exist.
type unknownKey struct{}

// An operation is a tool or, without a tool, a method.
type operation struct{ method, tool string }

func operationOf(req *mcp.Request) operation {
	if req.Method == mcp.MethodCallTool {
		return operation{req.Method, boundKey(req.Name())}
	}
	return operation{method: boundKey(req.Method)}
}

func toolsOf(list *mcp.ListToolsResult) []operation {
	var tools []operation
	for _, t := range list.Tools {
		if t != nil {
			tools = append(tools, operation{mcp.MethodCallTool, boundKey(t.Name)})
		}
	}
	return tools
}

func (l *rateLimit) knows(what operation) bool {
	if what.tool == "" && mcp.IsMethod(what.method) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.known.Get(what)
	return known
}

// markKnown records operations that are known to exist: operations that returned a result, and
// the tools in a list.
func (l *rateLimit) markKnown(all ...operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, what := range all {
		l.known.Put(what, struct{}{})
	}
}

// roundUp rounds a duration up to whole seconds, or milliseconds if it is short.
func roundUp(d time.Duration) time.Duration {
	unit := time.Millisecond
	if d > time.Second {
		unit = time.Second
	}
	return (d + unit - 1).Truncate(unit)
}

// ByPrincipal keys by caller. Unauthenticated callers share one key.
func ByPrincipal(ctx context.Context, req *mcp.Request) string { return ownerOf(ctx, req) }

// ByTool keys tool calls by tool and all other requests by method; all callers share these
// keys. Because clients choose names, all tools and methods that are not known to exist
// share one key. [RateLimit] learns that a tool exists when it is listed or returns a
// result, and that a method outside the specification exists when it returns a result. The
// first call then counts under both keys.
func ByTool(ctx context.Context, req *mcp.Request) string {
	switch {
	case ctx.Value(unknownKey{}) != nil:
		return "?"
	case req.Method == mcp.MethodCallTool:
		return "tool " + req.Name()
	}
	return req.Method
}

// ByAddress keys by the network address of the caller, as returned by address with or
// without a port. IPv6 addresses with the same 64-bit prefix, which usually belongs to one
// customer, share a key. Callers without an address, such as those on stdio, share one key.
//
// Behind a reverse proxy, the address of the connection is the proxy's. A header with the
// caller's address can be trusted only if the proxy overwrites it. ByAddress panics if
// address is nil.
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

// ByAll keys by the combination of keys, such as each tool for each principal. If any of
// the keys is empty, the request is not limited. ByAll panics if there are no keys or one
// is nil.
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
			if i < len(keys)-1 { // the length keeps the parts unambiguous
				parts[i] = fmt.Sprintf("%d:%s", len(parts[i]), parts[i])
			}
		}
		return strings.Join(parts, "")
	}
}

// TokenBucketOptions configure a [TokenBucket]. Nil means the zero
// TokenBucketOptions.
type TokenBucketOptions struct {
	// Burst is the number of requests that may arrive at once after an idle period. 0 means
	// the number of requests per period.
	Burst int
}

// maxKeys is the maximum number of keys that a limiter remembers, so that callers who make
// up keys cannot fill the memory: some 10 MB. It is far more than the callers of one process
// that are not idle.
const maxKeys = 1 << 16

// A TokenBucket is an in-memory [Limiter]. It must be created by [NewTokenBucket] and is
// safe for concurrent use.
//
// It remembers a limited number of keys whose buckets are not full. Beyond that, the least used
// keys are forgotten, and unknown keys start with as few tokens as these had left, so that no
// key gains by being forgotten.
type TokenBucket struct {
	// A bucket is stored as the time at which it is full (GCRA), so "owes nothing" and "owes
	// least" are comparisons. Unknown keys inherit the debt of forgotten ones.
	each  time.Duration // time to refill one token
	depth time.Duration // time to refill an empty bucket
	keys  int           // maxKeys, except in tests

	mu    sync.Mutex
	full  map[string]time.Time // by key: when the bucket is full again
	floor time.Time            // the same for unknown keys
}

// NewTokenBucket returns a limiter that allows n requests in a period of length in, evenly
// spread except for bursts. opts may be nil. NewTokenBucket panics if n or in is not
// positive, or the burst is negative.
func NewTokenBucket(n int, in time.Duration, opts *TokenBucketOptions) *TokenBucket {
	mustBePositive("NewTokenBucket: the number", n)
	mustBePositive("NewTokenBucket: the time", in)
	if opts != nil && opts.Burst < 0 {
		panic("middleware.NewTokenBucket: the burst is negative")
	}
	b := &TokenBucket{each: max(1, in/time.Duration(n)), keys: maxKeys, full: map[string]time.Time{}}
	burst := n
	if opts != nil && opts.Burst > 0 {
		burst = opts.Burst
	}
	b.depth = b.each * time.Duration(min(int64(burst), math.MaxInt64/2/int64(b.each)))
	return b
}

// Take implements [Limiter]. It never returns an error.
func (b *TokenBucket) Take(_ context.Context, key string) (time.Duration, error) {
	made.Check(b != nil && b.each > 0, "middleware: a TokenBucket", "NewTokenBucket")
	key = boundKey(key)
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

// makeRoomLocked forgets the keys whose buckets are full. If less than a sixteenth of the
// keys is then free, it also forgets the least used keys until that much is free, so that
// the next keys find room without a search.
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

// maxKey is the maximum length, in bytes, of a key that is stored unchanged.
const maxKey = 128

// boundKey replaces a long key by its hash, because clients choose the length of keys.
func boundKey(key string) string {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return string(sum[:])
}

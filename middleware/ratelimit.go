// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
// [ByAddress] and [ByEach].
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
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if isNotification(req) {
				return next.ServeMCP(ctx, req)
			}
			k := key(ctx, req)
			if k == "" {
				return next.ServeMCP(ctx, req)
			}
			after, err := limiter.Take(ctx, k)
			switch {
			case err != nil:
				return nil, &mcp.Error{Code: mcp.CodeInternalError, Message: "the rate limit could not be checked", Cause: fmt.Errorf("middleware.RateLimit: %w", err)}
			case after > 0:
				return nil, mcp.RateLimited(after, "too many requests; try again in %v", roundUp(after))
			}
			return next.ServeMCP(ctx, req)
		})
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
// have a limit of their own, for all callers together, and so has every method.
func ByTool(_ context.Context, req *mcp.Request) string {
	if req.Method == mcp.MethodCallTool {
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
//		if r := mcphttp.RequestFrom(ctx); r != nil {
//			return r.RemoteAddr
//		}
//		return ""
//	})
func ByAddress(address func(ctx context.Context) string) KeyFunc {
	if address == nil {
		panic("middleware.ByAddress: the function must not be nil")
	}
	return func(ctx context.Context, _ *mcp.Request) string { return "at " + network.Of(address(ctx)) }
}

// ByEach limits each combination of keys by itself, such as each tool for each
// principal. It is empty, and the request not limited, if any of the keys is. ByEach
// panics if there are no keys, or one is nil.
func ByEach(keys ...KeyFunc) KeyFunc {
	if len(keys) == 0 || slices.ContainsFunc(keys, func(key KeyFunc) bool { return key == nil }) {
		panic("middleware.ByEach: there must be keys, and none that is nil")
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

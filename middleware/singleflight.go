// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/mark"
	"github.com/go-psi/psi/mcp"
)

// Singleflight merges equal concurrent requests of a client into one. Requests are equal if
// they have the same method, parameters, principal and scopes. It merges only requests with
// the read-only methods that [Retry] retries. It never merges tool calls, subscriptions, or
// requests that carry answers to a question or a progress token.
//
// The shared request has the context values of the first caller. It is cancelled only when
// all of its callers are: cancelling one caller does not affect the others. It reports no
// progress. The result is shared and must not be modified, like every result.
//
// A caller can receive the response to a request that was sent before its own. Use
// Singleflight inside [Cache], which prevents such a response from hiding a change, and
// outside [Retry].
func Singleflight() mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc((&singleflight{next: next}).serve)
	}
}

// A singleflight merges the requests to one server.
type singleflight struct {
	next  mcp.Handler
	group async.Flight[flightKey, *sharedResult]
}

type flightKey struct {
	method, version, viewer, params string
	session                         *mcp.Session // of a legacy client; has its capabilities
	changes                         any          // invalidations seen by an outer Cache
	byApp                           bool         // see cacheKey
}

type sharedResult struct {
	res     mcp.Result
	claimed atomic.Bool // a caller is answering the question in res
}

func (s *singleflight) serve(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if !isReadOnly(req.Method) || !req.ProgressToken().IsZero() || carriesAnswers(req) {
		return s.next.ServeMCP(ctx, req)
	}
	copied, err := copyRequest(req)
	if err != nil {
		return nil, err
	}
	key := flightKey{req.Method, req.Version(), viewOf(ctx, req), paramsWithoutTrace(req), mcp.SessionFromContext(ctx), ctx.Value(changesKey{}), mark.IsApp(ctx)}
	shared, err := s.group.Do(mcp.WithLog(mcp.WithProgress(ctx, nil), "", nil), key, func(ctx context.Context) (*sharedResult, error) {
		res, err := s.next.ServeMCP(ctx, copied)
		return &sharedResult{res: res}, err
	})
	if p, ok := errors.AsType[*async.PanicError](err); ok {
		if p.Value == mcp.ErrAbortHandler { //nolint:errorlint // net/http compares the value, too
			panic(p.Value)
		}
		panic(p) // Recover unwraps it
	}
	switch {
	case errors.Is(err, async.ErrGoexit):
		return nil, mcp.Errorf(mcp.CodeInternalError, "the handler of %s ended its goroutine", clip(req.Method))
	case shared == nil:
		return nil, err
	}
	if _, ok := shared.res.(*mcp.InputRequired); ok && shared.claimed.Swap(true) {
		return s.next.ServeMCP(ctx, req) // the state of a question may be valid for one answer only
	}
	return shared.res, err
}

// copyRequest returns a copy of req that may be used after req has been answered and the
// buffer of its params is reused.
func copyRequest(req *mcp.Request) (*mcp.Request, error) {
	if req.Params() == nil {
		return req.Clone(), nil
	}
	return req.WithParams(slices.Clone(req.Params()))
}

// traceMembers are the members of _meta that identify a trace.
var traceMembers = []string{"traceparent", "tracestate", "baggage"}

// paramsWithoutTrace returns the params of a request without the trace members, which
// differ between otherwise equal requests.
func paramsWithoutTrace(req *mcp.Request) string {
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// RetryOptions configure [Retry]. Nil means the zero RetryOptions.
type RetryOptions struct {
	// Attempts is the maximum number of attempts, including the first. 0 means 4.
	Attempts int
	// Tools also retries calls of tools that the server has marked as read-only or
	// idempotent (readOnlyHint, idempotentHint) in a list that this middleware has seen.
	// These are hints: set Tools only for servers that you trust.
	Tools bool
	// Transient reports whether an error is temporary. It is not called for requests that
	// must not be retried. If it is nil, the temporary errors are rate limits
	// ([mcp.CodeRateLimited]), network failures and broken connections, and errors with a
	// method Transient() bool that returns true.
	Transient func(err error) bool
}

// Retry resends a client's requests if they fail for a temporary reason. It retries methods
// that only read: discovery, lists, resources, prompts and completions. It retries tool
// calls only if [RetryOptions].Tools allows it. It never retries requests that carry
// answers to a question, because the state of the question may be valid only once.
//
// The delay grows with each attempt, up to 10 s, and is shortened at random, so that clients
// that failed together do not retry together. If the server says when to retry
// ([mcp.RetryAfter]), Retry waits at least that long. If that exceeds 10 s or the deadline of
// the context, or if no attempts are left, Retry returns the last error. Progress starts over
// with each attempt.
//
// Use Retry outside middleware that rejects requests, such as [RateLimit], and inside
// [Logger], which then logs all attempts as one request.
func Retry(opts *RetryOptions) mcp.Middleware {
	var o RetryOptions
	if opts != nil {
		o = *opts
	}
	if o.Attempts <= 0 {
		o.Attempts = 4
	}
	if o.Transient == nil {
		o.Transient = isTransient
	}
	return func(next mcp.Handler) mcp.Handler {
		// Each handler is one server with its own tools.
		return &retrier{next: next, opts: o}
	}
}

// The delays are for a person who waits: what 10 s do not mend is worth an error.
const (
	minDelay = 200 * time.Millisecond
	maxDelay = 10 * time.Second
)

type retrier struct {
	next mcp.Handler
	opts RetryOptions

	mu    sync.Mutex
	tools map[string]bool // tools whose calls may be retried
}

// ServeMCP implements [mcp.Handler].
func (r *retrier) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if !r.isRepeatable(req) {
		return r.next.ServeMCP(ctx, req)
	}
	for attempt := 1; ; attempt++ {
		res, err := r.next.ServeMCP(ctx, req)
		r.learn(res)
		if err == nil || attempt >= r.opts.Attempts || ctx.Err() != nil || !r.opts.Transient(err) {
			return res, err
		}
		delay, ok := r.delay(err, attempt)
		if !ok || !wait(ctx, delay) {
			return nil, err
		}
		if t := mcptrace.ClientTraceFromContext(ctx); t != nil && t.Retry != nil {
			t.Retry(mcptrace.RetryInfo{Method: req.Method, Name: req.Name(), Err: err, Delay: delay})
		}
	}
}

// isRepeatable reports whether receiving the request twice has the same effect as
// receiving it once.
func (r *retrier) isRepeatable(req *mcp.Request) bool {
	if req.Method == mcp.MethodCallTool && !r.knows(req.Name()) || req.Method != mcp.MethodCallTool && !isReadOnly(req.Method) {
		return false
	}
	return !carriesAnswers(req)
}

// knows reports whether calls of a tool may be retried.
func (r *retrier) knows(tool string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tools[tool]
}

// isReadOnly reports whether requests of a method change nothing and terminate on their
// own.
func isReadOnly(method string) bool {
	switch method {
	case mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources,
		mcp.MethodListResourceTemplates, mcp.MethodReadResource, mcp.MethodGetPrompt, mcp.MethodComplete:
		return true
	}
	return false
}

// carriesAnswers reports whether a request carries answers to a question, or the state of a
// question.
func carriesAnswers(req *mcp.Request) bool {
	var p mcp.Resume
	return req.Decode(&p) != nil || p.InputResponses != nil || p.RequestState != nil
}

// maxTools bounds the number of remembered tools.
const maxTools = 10_000

func (r *retrier) learn(res mcp.Result) {
	list, ok := res.(*mcp.ListToolsResult)
	if !ok || list == nil || !r.opts.Tools {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range list.Tools {
		if t == nil {
			continue
		}
		delete(r.tools, t.Name)
		if repeatableTool(t.Annotations) && len(r.tools) < maxTools {
			if r.tools == nil {
				r.tools = map[string]bool{}
			}
			r.tools[t.Name] = true
		}
	}
}

func repeatableTool(a *mcp.ToolAnnotations) bool {
	says := func(hint *bool) bool { return hint != nil && *hint }
	return a != nil && (says(a.ReadOnlyHint) || says(a.IdempotentHint))
}

// delay returns how long to wait after an attempt, or false if the server asks for more
// than maxDelay.
func (r *retrier) delay(err error, attempt int) (time.Duration, bool) {
	d := async.Jitter(async.Backoff(minDelay, maxDelay, attempt-1))
	asked, ok := mcp.RetryAfter(err)
	if !ok {
		return d, true
	}
	return asked + d, asked <= maxDelay // with jitter: several clients may have been told the same time
}

// wait waits for d. It returns false if ctx is done earlier; if the deadline of ctx is not
// later than d, it returns false immediately.
func wait(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		return false
	}
	return async.Sleep(ctx, d) == nil
}

// isTransient is the default of RetryOptions.Transient.
func isTransient(err error) bool {
	if errors.Is(err, mcp.ErrNotConnected) {
		return true
	}
	for _, lasting := range []error{
		context.Canceled, context.DeadlineExceeded, mcp.ErrClosed,
		mcp.ErrUnauthorized, transport.ErrNotUnderstood, mcp.ErrSessionLost,
	} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	if says, ok := async.SaysTransient(err); ok {
		return says
	}
	if coded, ok := errors.AsType[*mcp.Error](err); ok {
		if coded.Code == mcp.CodeInternalError && coded.Cause != nil { // from a local server
			return isTransient(coded.Cause)
		}
		return coded.Code == mcp.CodeRateLimited
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	_, isNet := errors.AsType[interface { // like net.Error
		error
		Timeout() bool
		Temporary() bool
	}](err)
	return isNet
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/mcp"
)

// RetryOptions configure [Retry]. Nil means the zero RetryOptions.
type RetryOptions struct {
	// Attempts is how often a request is sent at most, the first time included. 0
	// means 4.
	Attempts int
	// MinDelay is the pause before the second attempt; it doubles with each, up to
	// MaxDelay. Of each pause up to a half is left off by chance, so that clients
	// that failed together do not come back together. 0 means 200 ms and 10 s.
	MinDelay, MaxDelay time.Duration
	// Tools also repeats calls of the tools that the server says are read-only or
	// idempotent (readOnlyHint, idempotentHint) in lists that passed through here.
	// These are hints; believe only servers that you trust.
	Tools bool
	// Transient says which errors may pass by themselves. Nil means: that the server
	// has too much to do ([mcp.CodeRateLimited]), that the network failed or the
	// connection broke off, and errors with a method Transient() bool that says so.
	// It is not asked about requests that must not be repeated.
	Transient func(err error) bool
}

// Retry sends a client's requests again if they fail for a reason that may pass. It
// repeats what only reads: discovery, lists, resources, prompts and completions;
// calls of tools only as [RetryOptions].Tools says; and nothing that carries answers
// to a question, whose state may be good for one time only.
//
// A server that says when it may be asked again ([mcp.RetryAfter]) is not asked
// before. If that is later than MaxDelay or than the deadline of the context, or if
// there are no attempts left, the error is the last one. Progress begins anew with
// each attempt.
//
// Retry belongs around middleware that refuses requests, such as [RateLimit], and
// inside of [Logger], which then has one line for all attempts.
func Retry(opts *RetryOptions) mcp.Middleware {
	var o RetryOptions
	if opts != nil {
		o = *opts
	}
	if o.Attempts <= 0 {
		o.Attempts = 4
	}
	if o.MinDelay <= 0 {
		o.MinDelay = 200 * time.Millisecond
	}
	if o.MaxDelay <= 0 {
		o.MaxDelay = 10 * time.Second
	}
	if o.Transient == nil {
		o.Transient = transient
	}
	return func(next mcp.Handler) mcp.Handler {
		// What is known of tools belongs to one server.
		return &retrier{next: next, opts: o}
	}
}

type retrier struct {
	next mcp.Handler
	opts RetryOptions

	mu    sync.Mutex
	tools map[string]bool // those whose calls may be repeated
}

// ServeMCP implements [mcp.Handler].
func (r *retrier) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if !r.repeatable(req) {
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
	}
}

// repeatable reports whether it makes no difference to the server whether it gets
// the request once or twice.
func (r *retrier) repeatable(req *mcp.Request) bool {
	if req.Method == mcp.MethodCallTool && !r.knows(req.Name()) || req.Method != mcp.MethodCallTool && !onlyReads(req.Method) {
		return false
	}
	return !answers(req)
}

// knows reports whether calls of a tool may be repeated.
func (r *retrier) knows(tool string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tools[tool]
}

// onlyReads reports whether requests of a method change nothing and end by
// themselves.
func onlyReads(method string) bool {
	switch method {
	case mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources,
		mcp.MethodListResourceTemplates, mcp.MethodReadResource, mcp.MethodGetPrompt, mcp.MethodComplete:
		return true
	}
	return false
}

// answers reports whether a request carries answers to a question, or its state.
func answers(req *mcp.Request) bool {
	var p mcp.Retry
	return req.Decode(&p) != nil || p.InputResponses != nil || p.RequestState != nil
}

// maxTools bounds of how many tools something is remembered.
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

// delay is how long to wait after an attempt, false if it is too long.
func (r *retrier) delay(err error, attempt int) (time.Duration, bool) {
	d := r.opts.MinDelay
	for range attempt - 1 {
		d = min(2*d, r.opts.MaxDelay)
	}
	d = min(d, r.opts.MaxDelay)
	d -= rand.N(d/2 + 1) //nolint:gosec // nobody gains by guessing it
	asked, ok := mcp.RetryAfter(err)
	if !ok {
		return d, true
	}
	return asked + d, asked <= r.opts.MaxDelay // those who were told the same time do not come together
}

// wait reports whether d has passed before the context ends. It does not wait in
// vain.
func wait(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		return false
	}
	return pause.For(ctx, d) == nil
}

// transient reports whether an error may pass by itself.
func transient(err error) bool {
	for _, lasting := range []error{
		context.Canceled, context.DeadlineExceeded, mcp.ErrClosed,
		mcp.ErrUnauthorized, mcp.ErrNotUnderstood, mcp.ErrSessionLost,
	} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	if told, ok := errors.AsType[interface {
		error
		Transient() bool
	}](err); ok {
		return told.Transient()
	}
	if coded, ok := errors.AsType[*mcp.Error](err); ok {
		if coded.Code == mcp.CodeInternalError && coded.Cause != nil { // made here: around a connection that serves, say
			return transient(coded.Cause)
		}
		return coded.Code == mcp.CodeRateLimited
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	_, isNet := errors.AsType[interface { // as net.Error
		error
		Timeout() bool
		Temporary() bool
	}](err)
	return isNet
}

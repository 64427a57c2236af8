// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/go-psi/psi/internal/replay"
	"github.com/go-psi/psi/mcp"
)

// BackgroundOptions configure [Manager.Background]. Nil means the zero BackgroundOptions.
type BackgroundOptions struct {
	// After is how long a call may take before it becomes a task. Until then it is an
	// ordinary call, with ordinary questions, progress and log messages. 0 means that every
	// call is a task from the start.
	After time.Duration
	// Required rejects calls of clients that do not support tasks, among them all clients of
	// older revisions. If it is false, such calls are served as ordinary calls.
	Required bool
	// TTL overrides Options.TTL. 0 means Options.TTL.
	TTL time.Duration
}

// Background returns middleware that runs tools in the background. Requests other than
// tools/call pass unchanged. opts may be nil. Background panics if a duration is negative.
//
// A call becomes at most one task: if several Background are around a tool, also in mounted
// servers, the outermost one runs it. What the handler of a task calls with its own request
// is part of the task.
//
// Every run of a handler, also of an ordinary call, sees its caller as the store returns it;
// see [mcp.Principal].
//
// The context of a handler that runs as a task is cancelled when the client cancels the
// task (the cause is an [*mcp.CancelError]), when the task's TTL expires, when the process
// shuts down, and when another process has taken over the task. [mcp.Progress] sets the
// status message. [mcp.Elicit] and similar functions end the run until there are answers.
// Log messages for the client are dropped.
func (m *Manager) Background(opts *BackgroundOptions) mcp.Middleware {
	m.mustBeMade()
	var o BackgroundOptions
	if opts != nil {
		o = *opts
	}
	if min(o.After, o.TTL) < 0 {
		panic("tasks: Background with a negative option")
	}
	o.TTL = cmp.Or(o.TTL, m.opts.TTL)
	m.mu.Lock()
	m.longest = max(m.longest, o.TTL)
	m.mu.Unlock()
	return func(next mcp.Handler) mcp.Handler { return &background{next, m, o} }
}

// background is the handler of a tool that runs in the background.
type background struct {
	next    mcp.Handler
	manager *Manager
	opts    BackgroundOptions
}

// Describe implements [mcp.Describer].
func (b *background) Describe() mcp.Description {
	if d, ok := b.next.(mcp.Describer); ok {
		return d.Describe()
	}
	return nil
}

// ServeMCP implements [mcp.Handler].
func (b *background) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Method != mcp.MethodCallTool || core.InTask(req) {
		return b.next.ServeMCP(ctx, req)
	}
	if r := runFromContext(ctx); r != nil {
		if res, isOther := r.deferHandler(ctx, b.next, req); !isOther {
			return res, nil
		}
		return b.next.ServeMCP(ctx, req)
	}
	req, err := withStoredCaller(req)
	if err != nil {
		return nil, err
	}
	switch {
	case !supports(req) && b.opts.Required:
		return nil, errUnsupported()
	case !b.manager.isServing(), !supports(req):
		return b.next.ServeMCP(core.ContextWithRequest(ctx, req), req)
	case b.opts.After > 0:
		return b.serveUntil(ctx, req)
	}
	return b.startTask(ctx, req)
}

// supports reports whether the client declared the extension in this request.
func supports(req *mcp.Request) bool { return req.ClientCapabilities().HasExtension(Extension) }

// errUnsupported returns the error for a client that does not support the required
// extension.
func errUnsupported() error {
	required := map[string]any{"requiredCapabilities": &mcp.ClientCapabilities{Extensions: mcp.Extensions{Extension: json.RawMessage("{}")}}}
	return mcp.Errorf(mcp.CodeMissingCapability, "this request needs a client that supports the extension %s", Extension).WithData(required)
}

// grace is how long a new task runs before its record is stored, unless something must be
// stored earlier. A task that ends within that time is written once. The client does not know
// the task yet, so nothing is lost if the process dies. If the write fails, the client gets
// an ordinary result.
const grace = 10 * time.Millisecond

// startTask makes the call a task from its start.
func (b *background) startTask(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	m := b.manager
	slot := callerOf(req.Principal)
	reserved := m.reserve(slot)
	rec, err := m.newRecord(ctx, req, b.opts.TTL, reserved)
	switch {
	case !reserved && err == nil:
		err = m.insert(ctx, rec, requestOf(ctx, req))
	case reserved && err != nil:
		m.release(slot)
	}
	if err != nil {
		return nil, clientError(err)
	}
	if !reserved {
		m.offer(ctx, rec)
		return &CreateResult{ResultBase: mcp.ResultBase{ResultType: ResultTask}, Task: rec.Task}, nil
	}
	r := m.newFirstRun(rec, requestOf(ctx, req))
	r.slot = slot
	running := r.contextFor(ctx)
	m.launch(r, func() (mcp.Result, error) { return r.serve(running, b.next, req) })
	return r.awaitTask(ctx)
}

// awaitTask waits until the record of a first run is stored. After grace, it stores the
// record itself. If the handler returns before that, its outcome is stored here, on a
// goroutine whose stack has already grown; if it cannot be stored, the call becomes an
// ordinary one.
func (r *run) awaitTask(ctx context.Context) (mcp.Result, error) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for {
		select {
		case <-r.decided:
			if r.unstored == nil {
				return r.answer(), nil
			}
			r.cancel(r.unstored)
			return nil, clientError(r.unstored)
		case o := <-r.outcomes:
			r.end(o)
			if _, asks := o.res.(*mcp.InputRequired); r.unstored != nil && !asks {
				return o.res, o.err
			}
		case <-ctx.Done():
			r.discard(context.Cause(ctx))
		case <-timer.C:
			_, _, _ = r.create(ctx, func(*record) error { return nil }) // the error is r.unstored
		}
	}
}

// serveUntil serves an ordinary call and turns it into a task if it takes longer than
// After.
func (b *background) serveUntil(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	m := b.manager
	r := &run{manager: m, replay: &replay.Run{}, original: req}
	running := r.contextFor(ctx)
	stop := context.AfterFunc(ctx, func() { r.cancel(context.Cause(ctx)) })
	defer stop()
	outcomes := make(chan outcome, 1)
	go func() {
		o := outcome{err: errExited}
		defer func() { outcomes <- o }() // even if the handler calls runtime.Goexit
		o.res, o.err = r.serve(running, b.next, req)
	}()
	timer := time.NewTimer(b.opts.After)
	defer timer.Stop()
	for {
		select {
		case o := <-outcomes:
			r.cancel(nil)
			return o.res, o.err
		case <-timer.C:
		}
		if ctx.Err() != nil {
			continue // the handler is about to return
		}
		if m.convertToTask(ctx, r, req, b.opts.TTL) != nil {
			timer.Reset(max(b.opts.After, m.opts.PollInterval)) // it stays an ordinary call, for now
			continue
		}
		cancelled := !stop() // the request was cancelled just now
		m.launch(r, func() (mcp.Result, error) {
			if cancelled {
				r.cancel(context.Cause(ctx)) // stop does not wait for it
				return nil, context.Cause(ctx)
			}
			o := <-outcomes
			return o.res, o.err
		})
		return r.answer(), nil
	}
}

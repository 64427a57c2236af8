// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/go-psi/psi/internal/replay"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
)

// BackgroundOptions configure [Manager.Background]. Nil means the zero BackgroundOptions.
type BackgroundOptions struct {
	// After is how long a call may take before it becomes a task. Until then it is an
	// ordinary call, with ordinary questions, progress and log messages. 0 means that a call
	// is a task from its beginning.
	After time.Duration
	// Required refuses calls of clients that do not support tasks. Otherwise they are served
	// as ordinary calls.
	Required bool
	// TTL replaces Options.TTL. 0 means that.
	TTL time.Duration
}

// Background returns middleware for tools that run in the background. Other requests than
// tools/call pass unchanged. Opts may be nil. It panics if a time is negative.
//
// The context of a handler that runs as a task ends when the client cancels the task (its
// cause is an [*mcp.CancelError]), when the task's TTL has passed, when the process shuts
// down, and when another process has taken the task over. [mcp.Progress] sets the status
// message. [mcp.Elicit] and the like end the run until there are answers. Log messages for
// the client are dropped.
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

// background is a tool that runs in the background.
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
	if req.Method != mcp.MethodCallTool {
		return b.next.ServeMCP(ctx, req)
	}
	if r := runFromContext(ctx); r != nil {
		return r.reach(ctx, b.next, req), nil
	}
	terms := core.TaskTerms(req)
	switch {
	case !supports(req) && b.opts.Required:
		return nil, errUnsupported()
	case terms != nil && !b.manager.isServing():
		return nil, mcp.Errorf(mcp.CodeInternalError, "tasks cannot be started at the moment; try again later")
	case !supports(req), !b.manager.isServing():
		return b.next.ServeMCP(ctx, req)
	case b.opts.After > 0 && terms == nil:
		return b.serveUntil(ctx, req)
	}
	return b.begin(ctx, req, b.ttl(terms))
}

// TaskSupport implements [tasking.Supporter].
func (b *background) TaskSupport() tasking.Support {
	if b.opts.Required {
		return tasking.Required
	}
	return tasking.Optional
}

// ttl returns the TTL of a task that is created on terms, which may be nil.
func (b *background) ttl(terms *tasking.Terms) time.Duration {
	if terms == nil || terms.TTL == 0 {
		return b.opts.TTL
	}
	return min(terms.TTL, b.opts.TTL)
}

// supports reports whether the client has declared the extension on this request.
func supports(req *mcp.Request) bool { return core.DeclaresExtension(req, Extension) }

// errUnsupported is the error for a client that must support the extension and does not.
func errUnsupported() error {
	required := map[string]any{"requiredCapabilities": &mcp.ClientCapabilities{Extensions: mcp.Extensions{Extension: json.RawMessage("{}")}}}
	return mcp.Errorf(mcp.CodeMissingCapability, "this request needs a client that supports the extension %s", Extension).WithData(required)
}

// grace is how long a new task runs before its record is stored, unless it has something to
// store earlier. A task that ends within that time is written once.
const grace = 10 * time.Millisecond

// begin makes the call a task from its beginning.
func (b *background) begin(ctx context.Context, req *mcp.Request, ttl time.Duration) (mcp.Result, error) {
	m := b.manager
	reserved := m.reserve()
	rec, err := m.newRecord(ctx, req, ttl, reserved)
	switch {
	case !reserved && err == nil:
		err = m.insert(ctx, rec, requestOf(ctx, req))
	case reserved && err != nil:
		m.release()
	}
	if err != nil {
		return nil, clientError(err)
	}
	if !reserved {
		m.offer(ctx, rec)
		return &CreateResult{ResultBase: mcp.ResultBase{ResultType: ResultTask}, Task: rec.Task}, nil
	}
	r := m.newFirstRun(rec, requestOf(ctx, req))
	running := r.contextFor(ctx)
	m.launch(r, func() (mcp.Result, error) { return r.serve(running, b.next, req) })
	return r.awaitTask(ctx)
}

// awaitTask waits until the record of a first run is stored, for the time of grace, and then
// stores it. What the handler returns in that time is stored here, on a goroutine that has
// its stack; if it cannot be stored, the call was an ordinary one.
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
			r.giveUp(context.Cause(ctx))
		case <-timer.C:
			_, _, _ = r.create(ctx, func(*record) error { return nil }) // the error is r.unstored
		}
	}
}

// serveUntil serves an ordinary call and, when it has taken long enough, makes it a task.
func (b *background) serveUntil(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	m := b.manager
	r := &run{manager: m, replay: &replay.Run{}, original: req}
	running := r.contextFor(ctx)
	stop := context.AfterFunc(ctx, func() { r.cancel(context.Cause(ctx)) })
	defer stop()
	outcomes := make(chan outcome, 1)
	go func() {
		o := outcome{err: errExited}
		defer func() { outcomes <- o }() // also if the handler calls runtime.Goexit
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
		if m.adopt(ctx, r, req, b.opts.TTL) != nil {
			timer.Reset(max(b.opts.After, m.opts.PollInterval)) // it stays an ordinary call, for now
			continue
		}
		cancelled := !stop() // in the last moment
		m.launch(r, func() (mcp.Result, error) {
			if cancelled {
				return nil, context.Cause(ctx)
			}
			o := <-outcomes
			return o.res, o.err
		})
		return r.answer(), nil
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/replay"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
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
		return r.serve(ctx, b.next, req)
	}
	switch {
	case !supports(req) && b.opts.Required:
		return nil, errUnsupported()
	case !supports(req), !b.manager.isServing():
		return b.next.ServeMCP(ctx, req)
	case b.opts.After > 0:
		return b.serveUntil(ctx, req)
	}
	return b.begin(ctx, req)
}

// supports reports whether the client has declared the extension on this request, which
// only those of the newest revision can.
func supports(req *mcp.Request) bool {
	return core.IsModern(req) && req.ClientCapabilities().HasExtension(Extension)
}

// errUnsupported is the error for a client that must support the extension and does not.
func errUnsupported() error {
	required := map[string]any{"requiredCapabilities": &mcp.ClientCapabilities{Extensions: mcp.Extensions{Extension: json.RawMessage("{}")}}}
	return mcp.Errorf(mcp.CodeMissingCapability, "this request needs a client that supports the extension %s", Extension).WithData(required)
}

// begin makes the call a task from its beginning.
func (b *background) begin(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	r, err := b.manager.create(ctx, req, b.opts.TTL, nil, b.manager.reserve())
	switch {
	case err != nil:
		return nil, err
	case r.isReserved:
		running := r.contextFor(ctx)
		b.manager.launch(r, func() { r.finish(r.serve(running, b.next, req)) })
	default:
		b.manager.offer(ctx, r.record.Task.ID)
	}
	return r.created(), nil
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
		res, err := r.serve(running, b.next, req)
		outcomes <- outcome{res, err}
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
		switch err := m.adopt(ctx, r, req, b.opts.TTL); {
		case err == nil && stop():
			m.launch(r, func() {
				o := <-outcomes
				r.finish(o.res, o.err)
			})
			return r.created(), nil
		case err == nil:
			m.launch(r, func() { r.finish(nil, context.Cause(ctx)) }) // cancelled in the last moment
		default:
			timer.Reset(max(b.opts.After, m.opts.PollInterval)) // it stays an ordinary call, for now
		}
	}
}

type outcome struct {
	res mcp.Result
	err error
}

// idLength is the length of an ID: 26 characters of base 32 for 130 random bits.
const idLength = 26

// create stores a new task. If reserved is true, this process is its owner; otherwise any
// process may take it. If it fails, nothing is left of the task, as far as the store allows.
func (m *Manager) create(ctx context.Context, req *mcp.Request, ttl time.Duration, memory *replay.Memory, reserved bool) (*run, error) {
	ttlMs, pollMs := max(ttl.Milliseconds(), 1), m.opts.PollInterval.Milliseconds()
	rec := &record{Caller: req.Principal, Memory: memory}
	rec.Task = Task{ID: strings.ToLower(rand.Text()), Status: Working, CreatedAt: now(), LastUpdatedAt: now(), TTLMs: &ttlMs, PollIntervalMs: &pollMs}
	if reserved {
		rec.Owner, rec.Epoch, rec.Attempts = m.owner, 1, 1
	}
	if err := m.insert(ctx, rec, requestOf(req)); err != nil {
		m.remove(context.WithoutCancel(ctx), rec)
		if reserved {
			m.unreserve()
		}
		return nil, clientError(err)
	}
	return m.newRun(rec, reserved), nil
}

// insert writes the record of a new task, after everything else that belongs to the task.
// The time is bounded, because an entry of the list is removed if no record follows it.
func (m *Manager) insert(ctx context.Context, rec *record, request json.RawMessage) (err error) {
	ctx, cancel := context.WithTimeout(ctx, m.opts.Lease/2)
	defer cancel()
	id, ttl := rec.Task.ID, rec.rest()
	if err := m.enter(ctx, rec.Caller, id, ttl); err != nil {
		return err
	}
	if err := m.list(ctx, id, rec.Round); err != nil {
		return err
	}
	if rec.Parts, err = m.putParts(ctx, "request", id, request, ttl); err != nil {
		return err
	}
	return m.put(ctx, rec, 0)
}

// remove takes away what insert has written. What it leaves behind expires, or is removed by
// the sweeper.
func (m *Manager) remove(ctx context.Context, rec *record) {
	id := rec.Task.ID
	if _, err := m.store.Take(ctx, m.key("task", id)); err != nil && !errors.Is(err, store.ErrNotFound) {
		m.opts.Logger.WarnContext(ctx, "tasks: a task could not be stored, or only in part", "task", id, "error", err)
	}
	_ = m.unlist(ctx, id, rec.Round)
	_ = m.leave(ctx, rec.Caller, id)
	for i := range rec.Parts {
		_, _ = m.store.Take(ctx, m.key("request", fmt.Sprintf("%s/%d", id, i)))
	}
}

// requestOf returns the params of a call, with those members of its metadata that a later
// run of the handler needs.
func requestOf(req *mcp.Request) json.RawMessage {
	if req.Params() == nil {
		return json.RawMessage("{}")
	}
	return req.Params()
}

// restore returns the request of a task, as its handler gets it when it runs again.
func (m *Manager) restore(ctx context.Context, rec *record) (*mcp.Request, error) {
	raw, err := m.parts(ctx, "request", rec.Task.ID, rec.Parts)
	if err != nil {
		return nil, fmt.Errorf("tasks: the request of a task is not in the store: %w", err)
	}
	req, err := mcp.NewRequest(mcp.MethodCallTool, withProgressToken(raw, mcp.IntID(1)))
	if err != nil {
		return nil, err
	}
	req.ID, req.Principal = mcp.StringID(rec.Task.ID), rec.Caller
	if rec.State == nil {
		return req, nil
	}
	answers := map[string]json.RawMessage{}
	for _, q := range rec.Asked {
		if q.Digest == "" && q.Answer != nil {
			answers[q.Key] = q.Answer
		}
	}
	return core.WithAnswers(req, answers, rec.State)
}

// withProgressToken returns params that ask for progress, which becomes the status message.
// A zero token stands for any.
func withProgressToken(params json.RawMessage, token mcp.ID) json.RawMessage {
	if token.IsZero() {
		token = mcp.IntID(1)
	}
	meta := jsonscan.Member(params, "_meta")
	if len(meta) == 0 || meta[0] != '{' {
		meta = []byte("{}")
	}
	with := jsonscan.AppendKey([]byte{'{'}, "_meta")
	with = append(with, '{')
	with = append(jsonscan.AppendKey(with, mcp.MetaProgressToken), token.String()...)
	with = jsonscan.AppendMembers(with, meta, mcp.MetaProgressToken)
	return jsonscan.AppendMembers(with, params, "_meta")
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware"
)

// arguments are the arguments of every tool. The tag identifies the call.
type arguments struct {
	Tag   string `json:"tag"`
	Steps int    `json:"steps"`
	Pause int    `json:"pause"` // milliseconds
}

// answer is the form that the user fills in.
type answer struct {
	Text string `json:"text"`
}

// kinds lists the kinds of calls to the initial tools, the more frequent ones several
// times.
var kinds = []string{"echo", "echo", "work", "work", "ask", "ask", "ask", "fail", "panic", "block"}

func (w *world) register() {
	for _, kind := range []string{"echo", "work", "ask", "fail", "panic", "block"} {
		w.mux.Tool(kind, w.tool(kind))
	}
	w.mux.Use(w.watch, middleware.Visible(visible))
	for _, uri := range slices.Concat(resources, []string{privateTo(principals[0]), privateTo(principals[1])}) {
		w.mux.Resource(uri, mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return uri, nil }, nil))
	}
}

// tool returns a tool of a kind that records its executions.
func (w *world) tool(kind string) mcp.Handler {
	serve := map[string]func(*world, context.Context, arguments) (string, error){
		"echo": (*world).echo, "dyn": (*world).echo, "work": (*world).work, "ask": (*world).ask,
		"fail": (*world).fail, "panic": (*world).panic, "block": (*world).block,
	}[kind]
	return mcp.ToolFunc(func(ctx context.Context, in arguments) (string, error) {
		w.served(ctx, in.Tag)
		defer w.finished(ctx, in.Tag)
		return serve(w, ctx, in)
	}, nil)
}

func (w *world) served(ctx context.Context, tag string) {
	if isThief(ctx) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serving++
	if c := w.calls[tag]; c != nil {
		if p := mcp.PrincipalFromContext(ctx); !p.Is(c.client.seenAs()) {
			w.wrongLockedf("%s: its handler takes %v for the caller, and it is %v", c, p, c.client.seenAs())
		}
		c.runs++
		c.serving++
	}
}

func (w *world) finished(ctx context.Context, tag string) {
	if isThief(ctx) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serving--
	c := w.calls[tag]
	if c == nil {
		w.wrongLockedf("a tool was called with the tag %q, which nobody sent", tag)
		return
	}
	c.serving--
	c.ended = time.Now()
	w.logLockedf("%s: a handler ended, its context is %v", c, context.Cause(ctx))
}

func (w *world) echo(ctx context.Context, in arguments) (string, error) {
	return in.Tag, async.Sleep(ctx, time.Duration(in.Pause)*time.Millisecond)
}

// work reports progress.
func (w *world) work(ctx context.Context, in arguments) (string, error) {
	for i := range in.Steps {
		if err := async.Sleep(ctx, time.Duration(in.Pause)*time.Millisecond); err != nil {
			return "", err
		}
		mcp.Progress(ctx, float64(i+1), float64(in.Steps), in.Tag)
		mcp.ClientLogger(ctx).Info(in.Tag)
	}
	return in.Tag, nil
}

// ask runs Once and asks two questions.
func (w *world) ask(ctx context.Context, in arguments) (string, error) {
	once, err := mcp.Once(ctx, "once", func(context.Context) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls[in.Tag].once++
		return in.Tag, nil
	})
	if err != nil {
		return "", err
	}
	a, err := mcp.Elicit[answer](ctx, "a", in.Tag+"a")
	if err != nil {
		return "", err
	}
	if err := async.Sleep(ctx, time.Duration(in.Pause)*time.Millisecond); err != nil {
		return "", err
	}
	b, err := mcp.Elicit[answer](ctx, "b", in.Tag+"b")
	if err != nil {
		return "", err
	}
	return once + a.Text + b.Text, nil
}

// asked returns the result of a call of ask whose questions were both accepted.
func asked(tag string) string { return tag + reply(tag+"a") + reply(tag+"b") }

// reply returns the user's answer to a question.
func reply(message string) string { return "re:" + message }

func (w *world) fail(_ context.Context, in arguments) (string, error) {
	return "", errors.New("failed " + in.Tag)
}

func (w *world) panic(_ context.Context, in arguments) (string, error) {
	panic(in.Tag)
}

// blocked is how long block waits.
const blocked = 10 * time.Minute

// block waits until it is cancelled, for at most blocked, because cancellations may be
// lost.
func (w *world) block(ctx context.Context, _ arguments) (string, error) {
	if err := async.Sleep(ctx, blocked); err != nil {
		return "", err
	}
	return "", errors.New("nobody cancelled")
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware"
)

// arguments are those of every tool. The tag says whose call it is.
type arguments struct {
	Tag   string `json:"tag"`
	Steps int    `json:"steps"`
	Pause int    `json:"pause"` // milliseconds
}

// answer is what the user fills in.
type answer struct {
	Text string `json:"text"`
}

// kinds are the tools that are there from the beginning, and for how long each may
// take at the most.
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

// tool makes a tool of a kind, which notes what becomes of it.
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
	return in.Tag, pause.For(ctx, time.Duration(in.Pause)*time.Millisecond)
}

// work says how far it is.
func (w *world) work(ctx context.Context, in arguments) (string, error) {
	for i := range in.Steps {
		if err := pause.For(ctx, time.Duration(in.Pause)*time.Millisecond); err != nil {
			return "", err
		}
		mcp.Progress(ctx, float64(i+1), float64(in.Steps), in.Tag)
		mcp.ClientLogger(ctx).Info(in.Tag)
	}
	return in.Tag, nil
}

// ask does something once and asks twice.
func (w *world) ask(ctx context.Context, in arguments) (string, error) {
	once, err := mcp.Once(ctx, "once", func() (string, error) {
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
	if err := pause.For(ctx, time.Duration(in.Pause)*time.Millisecond); err != nil {
		return "", err
	}
	b, err := mcp.Elicit[answer](ctx, "b", in.Tag+"b")
	if err != nil {
		return "", err
	}
	return once + a.Text + b.Text, nil
}

// asked is what a call of ask comes to when everything is answered.
func asked(tag string) string { return tag + reply(tag+"a") + reply(tag+"b") }

// reply is what the user says to a question.
func reply(message string) string { return "re:" + message }

func (w *world) fail(_ context.Context, in arguments) (string, error) {
	return "", errors.New("failed " + in.Tag)
}

func (w *world) panic(_ context.Context, in arguments) (string, error) {
	panic(in.Tag)
}

// blocked is for how long.
const blocked = 10 * time.Minute

// block waits until it is cancelled, but not for ever: cancellations get lost, too.
func (w *world) block(ctx context.Context, _ arguments) (string, error) {
	if err := pause.For(ctx, blocked); err != nil {
		return "", err
	}
	return "", errors.New("nobody cancelled")
}

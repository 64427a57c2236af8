// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// A mistake is a programming error and the expected message, either of a panic or of a
// returned error.
type mistake struct {
	name string
	make func() error
	want []string // parts of the message
}

// TestFindingU17Mistakes makes every mistake.
func TestFindingU17Mistakes(t *testing.T) {
	for _, group := range [][]mistake{names, handlers, resources, tools, options, running} {
		for _, m := range group {
			t.Run(m.name, func(t *testing.T) {
				text := attempt(m.make)
				for _, want := range m.want {
					if !strings.Contains(text, want) {
						t.Errorf("got %q, want %q in it", text, want)
					}
				}
			})
		}
	}
}

// attempt returns the text of the panic or error of a mistake.
func attempt(mistake func() error) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	if err := mistake(); err != nil {
		return err.Error()
	}
	return "accepted"
}

// panics adapts a function that panics.
func panics(fn func()) func() error {
	return func() error { fn(); return nil }
}

// register adapts a registration on a mux.
func register(fn func(m *mcp.Mux)) func() error {
	return panics(func() { fn(newMux()) })
}

func newMux() *mcp.Mux {
	return mcp.NewMux("mistakes", "v1", &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)})
}

// here is part of the location in every message.
const here = "_test.go:"

type none struct{}

// says returns a tool, asks a prompt and reads a resource with arguments In.
func says[In any](tool *mcp.Tool) mcp.Handler {
	return mcp.ToolFunc(func(context.Context, In) (string, error) { return "", nil }, tool)
}

func asks[In any](prompt *mcp.Prompt) mcp.Handler {
	return mcp.PromptFunc(func(context.Context, In) (string, error) { return "", nil }, prompt)
}

func reads[In any](resource *mcp.Resource) mcp.Handler {
	return mcp.ResourceFunc(func(context.Context, In) (string, error) { return "", nil }, resource)
}

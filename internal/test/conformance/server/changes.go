// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"sync"

	"github.com/go-psi/psi/mcp"
)

// addChanges adds the tools that change the lists of the server while it is serving.
func addChanges(mux *mcp.Mux) {
	const name = "transient"
	tool := toggle{
		add: func() {
			mux.Tool(name, mcp.ToolFunc(simpleText, about("Is here today and may be gone tomorrow.")))
		},
		remove: func() { mux.RemoveTool(name) },
	}
	prompt := toggle{
		add: func() {
			mux.Prompt(name, mcp.PromptFunc(simplePrompt, &mcp.Prompt{Description: "Is here today and may be gone tomorrow."}))
		},
		remove: func() { mux.RemovePrompt(name) },
	}
	mux.Tool("test_trigger_tool_change", mcp.ToolFunc(tool.flip, about("Adds a tool or takes it away again.")))
	mux.Tool("test_trigger_prompt_change", mcp.ToolFunc(prompt.flip, about("Adds a prompt or takes it away again.")))
}

// toggle is an item that each flip adds or removes.
type toggle struct {
	add, remove func()

	mu sync.Mutex
	on bool
}

func (t *toggle) flip(context.Context, none) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on {
		t.remove()
		t.on = false
		return "It is gone.", nil
	}
	t.add()
	t.on = true
	return "It is there.", nil
}

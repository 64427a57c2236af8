// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package psi

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// addTasks adds a task manager and a tool that elicits input. It returns the mux for the
// measured tools: mux itself, or one behind the manager.
func addTasks(mux *mcp.Mux, where string) *mcp.Mux {
	manager := tasks.New("compare", &tasks.Options{Store: store.NewMemory(&store.MemoryOptions{MaxBytes: 1 << 30}), MaxPerCaller: 1 << 30})
	manager.Register(mux)
	mux.With(manager.Background(nil)).Tool("ask", mcp.ToolFunc(ask, nil))
	if where == "behind" { // ended tasks expire soon
		return mux.With(manager.Background(&tasks.BackgroundOptions{TTL: time.Second}))
	}
	return mux
}

func ask(ctx context.Context, _ struct{}) (string, error) {
	answer, err := mcp.Elicit[struct {
		Name string `json:"name"`
	}](ctx, "name", "What is your name?")
	return answer.Name, err
}

// StartTask starts a task that waits for an answer.
func (c caller) StartTask(ctx context.Context) error {
	h, _, err := tasks.Start(ctx, c.Conn, &mcp.CallToolParams{Name: "ask", Arguments: json.RawMessage("{}")})
	if err == nil && h == nil {
		err = errors.New("the call is no task")
	}
	return err
}

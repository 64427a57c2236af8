// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
)

// The official TypeScript SDK calls tools of psi as tasks of 2025-11-25.
func TestTasksOfTypeScript(t *testing.T) {
	mux := mcp.NewMux("farm", "v1", &mcp.MuxOptions{Logger: logger(t)})
	manager := tasks.New("farm", &tasks.Options{PollInterval: 50 * time.Millisecond, Logger: logger(t)})
	manager.Register(mux)
	t.Cleanup(func() {
		if err := manager.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	tool := func(fn func(ctx context.Context) (string, error)) mcp.Handler {
		return mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) { return fn(ctx) }, nil)
	}
	mux.Tool("plain", tool(func(context.Context) (string, error) { return "plain", nil }))
	background := mux.With(manager.Background(nil))
	background.Tool("quick", tool(func(context.Context) (string, error) { return "done", nil }))
	background.Tool("fail", tool(func(context.Context) (string, error) { return "", errors.New("no film") }))
	background.Tool("wait", tool(func(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) }))
	mux.With(manager.Background(&tasks.BackgroundOptions{Required: true})).Tool("ask", tool(func(ctx context.Context) (string, error) {
		answer, err := mcp.Elicit[struct {
			Codec string `json:"codec"`
		}](ctx, "codec", "Which codec?")
		return answer.Codec, err
	}))
	url := serve(t, mcphttp.NewHandler(mux, &mcphttp.Options{Logger: logger(t)}))
	if out, err := node(t, "tasks.mjs", url).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

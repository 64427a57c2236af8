// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// T43, the client's half: a function of the client that panics fails its question or
// its notification, and the connection lives.
func TestTrap43ClientCallbacksPanic(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("fine", says("fine"))
	for name, ask := range map[string]func(ctx context.Context) error{
		"elicit": func(ctx context.Context) error { _, err := mcp.Elicit[yes](ctx, "k", "?"); return err },
		"url":    func(ctx context.Context) error { return mcp.ElicitURL(ctx, "k", "?", "https://example.com") },
		"sample": func(ctx context.Context) error {
			_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1})
			return err
		},
		"log":      func(ctx context.Context) error { mcp.ClientLogger(ctx).Error("said"); return nil },
		"progress": func(ctx context.Context) error { mcp.Progress(ctx, 1, 2, "made"); return nil },
	} {
		mux.Tool(name, mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { return name, ask(ctx) }, nil))
	}
	opts := &mcp.ClientOptions{
		LogLevel:     mcp.LoggingLevelDebug,
		Elicit:       func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) { panic("elicit") },
		ElicitURL:    func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) { panic("url") },
		Sample:       func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { panic("sample") },
		Log:          func(context.Context, *mcp.Conn, *mcp.LoggingMessageParams) { panic("log") },
		Notification: func(context.Context, *mcp.Conn, *mcp.Request) { panic("changed") },
	}
	(&mcptest.Client{Options: *opts}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) {})
		for name, fine := range map[string]bool{"elicit": false, "url": false, "sample": false, "log": true, "progress": true} {
			res, err := c.CallTool(ctx, tool(name, ""))
			if ok := err == nil && !res.IsError; ok != fine {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		}
		heard := make(chan struct{}, 100)
		s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {
			heard <- struct{}{}
			panic("change")
		})
		if err != nil {
			t.Fatal(err)
		}
		mux.Tool("new", says(""))
		<-heard
		mux.RemoveTool("new")
		s.Close()
		<-s.Done()
		if got, err := mcp.Call[string](t.Context(), c, "fine", nil); err != nil || got != "fine" {
			t.Errorf("after that: %q, %v", got, err)
		}
	})
}

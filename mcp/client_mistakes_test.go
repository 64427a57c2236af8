// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// TestFindingV12NilFunctions subscribes without a function for the changes.
func TestFindingV12NilFunctions(t *testing.T) {
	c := mcptest.Connect(t, mcp.NewMux("m", "v1", quiet()))
	u := mcp.NewClient("c", "v1", nil).Maintain(t.Context(), mcp.InProcess(mcp.NewMux("m", "v1", quiet())), &mcp.UpstreamOptions{Logger: quiet().Logger})
	t.Cleanup(func() { _ = u.Close() })
	for name, call := range map[string]func(){
		"Conn.Listen":     func() { _, _ = c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, nil) },
		"Conn.Subscribe":  func() { _, _ = c.Subscribe(t.Context(), "r:r", nil) },
		"Upstream.Listen": func() { _, _ = u.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, nil) },
	} {
		wantPanic(t, call, name+" at client_mistakes_test.go:", "the function is nil")
	}
}

// TestFindingV12Sampling asks without params, and answers without an answer.
func TestFindingV12Sampling(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	sampling := func(name string, params *mcp.CreateMessageParams) {
		mux.Tool(name, mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			_, err := mcp.Sample(ctx, "k", params)
			return "", err
		}, nil))
	}
	sampling("nil", nil)
	sampling("asks", &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("Hi")}}}})
	empty := func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		return &mcp.CreateMessageResult{}, nil
	}
	(&mcptest.Client{Options: mcp.ClientOptions{Sample: empty}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for tool, want := range map[string]string{
			"nil":  `question "k": the params are nil`,
			"asks": "the client's function returned an answer without role, content or model",
		} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
			if text := textOf(res); err != nil || !strings.Contains(text, want) {
				t.Errorf("%s: got %q, %v", tool, text, err)
			}
		}
	})
}

// TestFindingV12OlderInProcess connects in process with a version that only other transports
// speak.
func TestFindingV12OlderInProcess(t *testing.T) {
	client := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: "2025-11-25"})
	_, err := client.Connect(t.Context(), mcp.InProcess(mcp.NewMux("m", "v1", quiet())))
	if err == nil || !strings.Contains(err.Error(), "InProcess speaks only "+mcp.LatestVersion) {
		t.Errorf("got %v", err)
	}
}

// TestFindingV12OrderlyEnd checks that an Upstream that ends with its context is no error.
func TestFindingV12OrderlyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		u := mcp.NewClient("c", "v1", nil).Maintain(ctx, mcp.InProcess(mcp.NewMux("m", "v1", quiet())),
			&mcp.UpstreamOptions{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		synctest.Wait() // until it is connected
		cancel()
		<-u.Done()
		if state := u.State(); !state.Closed || log.Len() > 0 {
			t.Errorf("the state is %+v, logged %s", state, &log)
		}
	})
}

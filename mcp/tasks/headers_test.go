// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// A task that waits for a slot is compared with its headers, too.
func TestLookQueuedTaskComparesHeaders(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)
	for header, want := range map[string]tasks.Status{"us": tasks.Completed, "eu": tasks.Failed, "": tasks.Failed} {
		inBubble(t, func(t *testing.T) {
			r := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxRunning: 1}, nil)
			gate, ran := make(chan struct{}), false
			r.tool("block", func(context.Context) (string, error) { <-gate; return "", nil })
			r.background.Tool("run", mcp.ToolFunc(func(context.Context, struct {
				Region string `json:"region"`
			}) (string, error) {
				ran = true
				return "ran", nil
			}, &mcp.Tool{InputSchema: schema}))
			c := r.connect(t)
			blocking := start(t, c, "block")
			client := sender(nil, true)
			req := client.NewRequest(mcp.MethodCallTool, map[string]any{"name": "run", "arguments": map[string]any{"region": "us"}})
			req.Header = http.Header{}
			if header != "" {
				req.Header["Mcp-Param-Region"] = []string{header}
			}
			res, err := serve(t.Context(), r.mux, req, nil)
			created, ok := res.(*tasks.CreateResult)
			if !ok {
				t.Fatalf("%+v, %v", res, err)
			}
			close(gate)
			until(t, blocking, tasks.Completed)
			until(t, tasks.Attach(c, created.ID), want)
			if ran != (want == tasks.Completed) {
				t.Errorf("with the header %q and the argument us, the tool ran: %t", header, ran)
			}
		})
	}
}

// So is one whose tool is on a mounted server.
func TestLookQueuedTaskOfAMountComparesHeaders(t *testing.T) {
	for header, want := range map[string]tasks.Status{"us": tasks.Completed, "eu": tasks.Failed, "": tasks.Failed} {
		inBubble(t, func(t *testing.T) {
			behind, ran := mcp.NewMux("behind", "1", nil), false
			behind.Tool("run", mcp.ToolFunc(func(context.Context, struct {
				Region string `json:"region"`
			}) (string, error) {
				ran = true
				return "ran", nil
			}, &mcp.Tool{InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)}))
			r := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxRunning: 1}, nil)
			gate := make(chan struct{})
			r.tool("block", func(context.Context) (string, error) { <-gate; return "", nil })
			r.background.Mount("a_", (&mcptest.Client{Options: *forwarding(mcp.LatestVersion)}).Connect(t, behind))
			c := r.connect(t)
			blocking := start(t, c, "block")
			req := sender(nil, true).NewRequest(mcp.MethodCallTool, map[string]any{"name": "a_run", "arguments": map[string]any{"region": "us"}})
			req.Header = http.Header{}
			if header != "" {
				req.Header["Mcp-Param-Region"] = []string{header}
			}
			res, err := serve(t.Context(), r.mux, req, nil)
			created, ok := res.(*tasks.CreateResult)
			if !ok {
				t.Fatalf("%+v, %v", res, err)
			}
			close(gate)
			until(t, blocking, tasks.Completed)
			until(t, tasks.Attach(c, created.ID), want)
			if ran != (want == tasks.Completed) {
				t.Errorf("with the header %q and the argument us, the tool ran: %t", header, ran)
			}
		})
	}
}

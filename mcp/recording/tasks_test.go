// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcp/transport"
)

// Requests about a task can be replayed on every transport of the revision that has tasks. Over
// HTTP, the ID of the task is also in a header.
func TestTasks(t *testing.T) {
	for _, path := range mcptest.Paths() {
		if !slices.Contains(path.Versions(), mcp.LatestVersion) {
			continue
		}
		t.Run(path.Name, func(t *testing.T) {
			newServer := func() transport.Transport {
				mux, manager := mcp.NewMux("m", "v1", nil), tasks.New("m", nil)
				t.Cleanup(func() { _ = manager.Shutdown(context.WithoutCancel(t.Context())) })
				manager.Register(mux)
				mux.With(manager.Background(nil)).Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
					<-ctx.Done()
					return "", context.Cause(ctx)
				}, nil))
				return path.Serve(t, mux)
			}
			var file lockedBuffer
			c := mcptest.Dial(t, mcptest.Record(newServer(), &file), &mcp.ClientOptions{Extensions: []*mcp.ClientExtension{tasks.Client()}})
			h, _, err := tasks.Start(t.Context(), c, &mcp.CallToolParams{Name: "wait"})
			if err != nil {
				t.Fatal(err)
			}
			if d, err := h.Get(t.Context()); err != nil || d.Status != tasks.Working {
				t.Errorf("tasks/get: %+v, %v", d, err)
			}
			if err := h.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			_ = c.Close()
			if err := mcptest.Replay(t, strings.NewReader(file.String()), nil).Drive(t.Context(), newServer()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// Tests of public advisories are named after them. They are listed in
// docs/evidence/advisories.md.

// mcp-server-kubernetes omitted tools from its list, but ran them for callers that knew
// their names.
func TestAdvisoryCVE_2026_46519(t *testing.T) {
	var ran atomic.Int64
	mux := mcp.NewMux("cluster", "v1", quiet())
	mux.Use(middleware.Visible(func(_ context.Context, _ mcp.Kind, name string) bool {
		return !strings.HasPrefix(name, "delete")
	}))
	cluster := mcp.NewMux("nodes", "v1", quiet())
	for name, m := range map[string]*mcp.Mux{"delete_pod": mux, "get_pod": mux, "node": cluster} {
		m.Tool(name, mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
			if name != "get_pod" {
				ran.Add(1)
			}
			return name, nil
		}, nil))
	}
	mux.Mount("delete_", cluster)
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "get_pod" {
			t.Errorf("listed %+v, %v", list, err)
		}
		for _, name := range []string{"delete_pod", "delete_node"} {
			if res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name}); err == nil {
				t.Errorf("%s: %+v", name, res)
			}
		}
		if res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_pod"}); err != nil || res.IsError {
			t.Errorf("get_pod: %+v, %v", res, err)
		}
	})
	if n := ran.Load(); n != 0 {
		t.Errorf("hidden tools ran %d times", n)
	}
}

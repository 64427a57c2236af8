// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// userMuxes has a mux for each caller.
type userMuxes map[string]*mcp.Mux

func (m userMuxes) of(p *mcp.Principal) *mcp.Mux { return m[p.Subject] }

func TestMuxPerUser(t *testing.T) {
	muxes := userMuxes{"ada": newMux(), "alan": mcp.NewMux("empty", "v1.0.0", nil)}
	choose := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		caller := req.Principal
		if caller == nil {
			return nil, mcp.Errorf(mcp.CodeInvalidRequest, "the caller is not known")
		}
		return muxes.of(caller).ServeMCP(ctx, req)
	})
	for user, want := range map[string]bool{"ada": true, "alan": false} {
		client := &mcptest.Client{Principal: &mcp.Principal{Subject: user}}
		_, err := mcp.Call[string](t.Context(), client.Connect(t, choose), "greet", nil)
		if (err == nil) != want {
			t.Errorf("%s: %v", user, err)
		}
	}
}

// TestChooseWhatPasses lets a gateway's callers see a part of a server.
func TestChooseWhatPasses(t *testing.T) {
	hello := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil)
	github := mcp.NewMux("github", "v1.0.0", nil)
	for _, name := range []string{"get_issue", "search", "delete_repository"} {
		github.Tool(name, hello)
	}
	var logged strings.Builder
	logger := slog.New(slog.NewTextHandler(&logged, nil))
	mux := mcp.NewMux("gateway", "v1.0.0", nil)
	mux.Use(middleware.Audit(middleware.AuditLog(logger), nil))
	mux.With(
		middleware.Rename(map[string]string{"search": "search_issues"}),
		middleware.Allow(mcp.KindTool, "get_*", "search"),
	).Mount("github_", github)
	conn := mcptest.Connect(t, mux)
	var names []string
	for tool, err := range conn.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"github_get_issue", "github_search_issues"}) {
		t.Errorf("listed %q", names)
	}
	if got, err := mcp.Call[string](t.Context(), conn, "github_search_issues", nil); err != nil || got != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
	if !strings.Contains(logged.String(), "github_search_issues") {
		t.Errorf("the audit log is %s", &logged)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/toolsearch"
	"github.com/go-psi/psi/middleware"
)

// newCatalog returns a gateway that lists two tools and the pinned ones.
func newCatalog(servers map[string]mcp.Handler, logger *slog.Logger) *mcp.Mux {
	mux := mcp.NewMux("catalog", "v1.0.0", nil)
	mux.Use(toolsearch.New(&toolsearch.Options{Pinned: []string{"files_read"}}))
	mux.Use(middleware.Visible(mayUse), middleware.Audit(middleware.AuditLog(logger), nil))
	for prefix, server := range servers {
		mux.Mount(prefix, server)
	}
	return mux
}

// mayUse hides what deletes from callers who may not delete.
func mayUse(ctx context.Context, _ mcp.Kind, name string) bool {
	return !strings.Contains(name, "delete") || mcp.PrincipalFromContext(ctx).HasScope("delete")
}

// withFallback ranks by meaning, or by words while the service that computes meanings is down.
func withFallback(meaning toolsearch.Ranker) toolsearch.Ranker {
	words := toolsearch.BM25()
	return func(ctx context.Context, query string, tools []*mcp.Tool) ([]*mcp.Tool, error) {
		if ranked, err := meaning(ctx, query, tools); err == nil {
			return ranked, nil
		}
		return words(ctx, query, tools)
	}
}

// TestCatalog has a model find and call a tool that is not listed.
func TestCatalog(t *testing.T) {
	files := mcp.NewMux("files", "v1.0.0", nil)
	for name, description := range map[string]string{
		"read": "Read a file.", "delete": "Delete a file for ever.", "findText": "Search the text of all files.",
	} {
		files.Tool(name, mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return name, nil }, &mcp.Tool{Description: description}))
	}
	var logged strings.Builder
	mux := newCatalog(map[string]mcp.Handler{"files_": files}, slog.New(slog.NewTextHandler(&logged, nil)))
	conn := mcptest.Connect(t, mux)
	list, err := conn.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 3 || list.Tools[2].Name != "files_read" {
		t.Errorf("got %v, %v", list, err)
	}
	for query, want := range map[string]string{"searching the texts": "files_findText", "remove for ever": ""} {
		found, err := mcp.Call[mcp.ListToolsResult](t.Context(), conn, "search_tools", map[string]any{"query": query, "limit": 1})
		if err != nil || want == "" && len(found.Tools) > 0 || want != "" && (len(found.Tools) != 1 || found.Tools[0].Name != want) {
			t.Errorf("%s: got %v, %v", query, found, err)
		}
	}
	got, err := mcp.Call[string](t.Context(), conn, "call_tool", map[string]any{"name": "files_findText"})
	if err != nil || got != "findText" || !strings.Contains(logged.String(), "files_findText") {
		t.Errorf("got %q, %v, logged %s", got, err, &logged)
	}
}

func TestWithFallback(t *testing.T) {
	rank := withFallback(func(_ context.Context, query string, tools []*mcp.Tool) ([]*mcp.Tool, error) {
		if query == "down" {
			return nil, errors.New("the service is down")
		}
		return tools[1:], nil
	})
	tools := []*mcp.Tool{{Name: "slow_down"}, {Name: "speed_up"}}
	for query, want := range map[string]string{"down": "slow_down", "faster": "speed_up"} {
		if got, err := rank(t.Context(), query, tools); err != nil || len(got) != 1 || got[0].Name != want {
			t.Errorf("%s: got %v, %v", query, got, err)
		}
	}
}

// TestToolsOnly serves a host that knows neither resources nor prompts.
func TestToolsOnly(t *testing.T) {
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Use(middleware.ResourcesAsTools(), middleware.PromptsAsTools())
	mux.Resource("notes://today", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "Buy tea.", nil }, nil))
	got, err := mcp.Call[string](t.Context(), mcptest.Connect(t, mux), "read_resource", map[string]any{"uri": "notes://today"})
	if err != nil || got != "Buy tea." {
		t.Errorf("got %q, %v", got, err)
	}
}

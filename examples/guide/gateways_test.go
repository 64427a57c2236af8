// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
		middleware.Reshape(map[string]mcp.Shape{"search": {Name: "search_issues"}}),
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

func tenantOf(ctx context.Context) (any, error) {
	caller := mcp.PrincipalFromContext(ctx)
	if caller == nil {
		return nil, errors.New("sign in first")
	}
	return caller.Claims["tenant"], nil
}

// firstBlock spares the model all but the first block of a result.
func firstBlock(_ context.Context, r *mcp.CallToolResult) (*mcp.CallToolResult, error) {
	short := *r
	short.Content = r.Content[:min(1, len(r.Content))]
	return &short, nil
}

// onlyIDs keeps the IDs of what was found, in the data and in its text.
func onlyIDs(_ context.Context, r *mcp.CallToolResult) (*mcp.CallToolResult, error) {
	var found struct {
		Hits []struct {
			ID string `json:"id"`
		} `json:"hits"`
	}
	if err := json.Unmarshal(r.StructuredContent, &found); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(found)
	if err != nil {
		return nil, err
	}
	short := *r
	short.StructuredContent, short.Content = raw, mcp.Contents{mcp.Text(string(raw))}
	return &short, nil
}

// TestReshapedData cuts the data of a result down.
func TestReshapedData(t *testing.T) {
	type hit struct {
		ID   string `json:"id"`
		Text string `json:"text,omitempty"`
	}
	type hits struct {
		Hits []hit `json:"hits"`
	}
	mux := mcp.NewMux("documents", "v1.0.0", nil)
	search := mcp.ToolFunc(func(context.Context, struct{}) (hits, error) { return hits{[]hit{{"1", "long"}}}, nil }, nil)
	mux.Tool("search", mcp.Reshape(search, mcp.Shape{Result: onlyIDs}))
	got, err := mcptest.Connect(t, mux).CallTool(t.Context(), &mcp.CallToolParams{Name: "search"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"hits":[{"id":"1"}]}`
	if text, ok := got.Content[0].(*mcp.TextContent); !ok || text.Text != want || string(got.StructuredContent) != want {
		t.Errorf("got %v and %s, want %s", got.Content[0], got.StructuredContent, want)
	}
}

// TestReshapedTools has a gateway decide what the model need not.
func TestReshapedTools(t *testing.T) {
	type query struct {
		Q      string `json:"q"`
		Tenant string `json:"tenant"`
		Limit  int    `json:"limit"`
	}
	documents := mcp.NewMux("documents", "v1.0.0", nil)
	documents.Tool("search", mcp.ToolFunc(func(_ context.Context, in query) (mcp.Contents, error) {
		return mcp.Contents{mcp.Text(fmt.Sprintf("%+v", in)), mcp.Text("more")}, nil
	}, nil))
	mux := mcp.NewMux("gateway", "v1.0.0", nil)
	mux.With(middleware.Reshape(map[string]mcp.Shape{
		"search": {
			Name: "search_documents",
			Args: map[string]mcp.Arg{
				"q":      {Name: "query", Description: "Words that the document contains"},
				"limit":  {Default: 10},
				"tenant": {Preset: tenantOf}, // the model neither sees nor sets it
			},
			Result: firstBlock,
		},
	})).Mount("docs_", documents)

	client := &mcptest.Client{Principal: &mcp.Principal{Subject: "ada", Claims: map[string]any{"tenant": "acme"}}}
	got, err := mcp.Call[string](t.Context(), client.Connect(t, mux), "docs_search_documents", map[string]any{"query": "tea"})
	if err != nil || got != "{Q:tea Tenant:acme Limit:10}" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := mcp.Call[string](t.Context(), mcptest.Connect(t, mux), "docs_search_documents", map[string]any{"query": "tea"}); err == nil {
		t.Error("nobody has signed in")
	}
}

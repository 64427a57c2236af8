// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package toolsearch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/toolsearch"
)

func quiet() *mcp.MuxOptions { return &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)} }

// repository is the argument of the tools of an office.
type repository struct {
	Owner string `json:"owner" jsonschema:"The account that it belongs to"`
	State string `json:"state,omitempty" jsonschema:"enum=open,enum=archived"`
}

// office returns a server with some tools, of which only search_tools and call_tool are listed.
func office(opts *toolsearch.Options) *mcp.Mux {
	mux := mcp.NewMux("office", "v1", quiet())
	mux.Use(toolsearch.New(opts))
	for name, description := range map[string]string{
		"create_issue": "Report a bug or ask for a feature.",
		"listBranches": "Branches of the source code.",
		"HTTPRequest":  "Fetch a page of the web.",
		"send-mail":    "Write to somebody.",
		"天気予報":         "指定した都市の天気予報を取得します。",
		"help":         "What this server can do.",
	} {
		mux.Tool(name, mcp.ToolFunc(func(_ context.Context, in map[string]any) (string, error) { return fmt.Sprint(name, in), nil },
			&mcp.Tool{Description: description}))
	}
	mux.Tool("open_repository", mcp.ToolFunc(func(_ context.Context, in repository) (repository, error) { return in, nil }, nil))
	return mux
}

// found are the names of the tools that a search finds.
func found(t *testing.T, c *mcp.Conn, args string) string {
	t.Helper()
	var names []string
	for _, tool := range search(t, c, args).Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// results is the structured content of search_tools.
type results struct {
	Tools   []*mcp.Tool `json:"tools"`
	Omitted []string    `json:"omitted"`
	Hint    string      `json:"hint"`
}

func search(t *testing.T, c *mcp.Conn, args string) (out results) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "search_tools", Arguments: json.RawMessage(args)})
	if err != nil || res.IsError {
		t.Fatalf("search %s: %v, %v", args, res, err)
	}
	if err := json.Unmarshal(res.StructuredContent, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// call calls a tool through call_tool, and returns the text of its result.
func call(t *testing.T, c *mcp.Conn, name, args string) string {
	t.Helper()
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))})
	if err != nil {
		return "error: " + err.Error()
	}
	return textOf(res)
}

func textOf(res *mcp.CallToolResult) string {
	if len(res.Content) == 0 {
		return ""
	}
	return res.Content[0].(*mcp.TextContent).Text
}

func listed(t *testing.T, c *mcp.Conn) string {
	t.Helper()
	var names []string
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package toolsearch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/toolsearch"
	"github.com/go-psi/psi/middleware"
)

// A list shows the two tools and those that are pinned. A search finds the others by what a
// model would call them.
func TestSearch(t *testing.T) {
	mcptest.Run(t, office(&toolsearch.Options{Pinned: []string{"open_repository", "gone", "help"}}), func(t *testing.T, c *mcp.Conn) {
		if got := listed(t, c); got != "search_tools call_tool open_repository help" {
			t.Errorf("listed %s", got)
		}
		for query, want := range map[string]string{
			"create_issue":           "create_issue",
			"make new issues":        "create_issue",
			"LIST BRANCHES":          "listBranches",
			"http":                   "HTTPRequest",
			"archived":               "open_repository", // a value of an argument
			"the account's owner":    "open_repository", // the name of an argument
			"mails":                  "send-mail",
			"天気":                     "天気予報",
			"都":                      "天気予報",
			"what can it do":         "help", // there are no other words
			"zzz":                    "",
			"!?":                     "",
			strings.Repeat("é", 500): "",
		} {
			got := found(t, c, fmt.Sprintf(`{"query":%q,"limit":1}`, query))
			if query == "what can it do" {
				if got == "" {
					t.Errorf("%s: found nothing", query)
				}
			} else if got != want {
				t.Errorf("%s: found %q, want %q", query, got, want)
			}
		}
		tool := search(t, c, `{"query":"owner of a repository"}`).Tools[0]
		if want := `"enum":["open","archived"]`; tool.Name != "open_repository" || !strings.Contains(string(tool.InputSchema), want) || tool.OutputSchema == nil {
			t.Errorf("found %+v, not the whole definition", tool)
		}
		if hint := search(t, c, `{"query":"zzz"}`).Hint; !strings.Contains(hint, "No tool matches") {
			t.Errorf("the hint is %q", hint)
		}
		for _, args := range []string{`{}`, `{"query":""}`, `{"query":"a","limit":21}`, `{"query":"a","limit":0}`, `{"query":"a","max":1}`} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "search_tools", Arguments: json.RawMessage(args)})
			if err != nil || !res.IsError || !strings.HasPrefix(textOf(res), "invalid arguments") {
				t.Errorf("%s: %v, %v", args, res, err)
			}
		}
	})
}

// There is one page, so a cursor is not of this list.
func TestCursor(t *testing.T) {
	cursor := "x"
	_, err := mcptest.Connect(t, office(nil)).ListTools(t.Context(), &mcp.ListParams{Cursor: &cursor})
	if mcp.CodeOf(err) != mcp.CodeInvalidParams {
		t.Errorf("got %v", err)
	}
}

// A result is as large as a model can read, whatever servers write into definitions.
func TestResultsAreBounded(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(toolsearch.New(nil))
	for i := range 30 {
		size := 10 << 10
		if i == 7 {
			size = 70 << 10
		}
		mux.Tool(fmt.Sprintf("report_%d", i), mcp.WithDescription(mcp.HandlerFunc(nothing), &mcp.Tool{
			Description: "report " + strings.Repeat("x", size),
			Icons:       []mcp.Icon{{Src: "data:image/png;base64," + strings.Repeat("A", 70<<10)}},
		}))
	}
	c := mcptest.Connect(t, mux)
	if got := search(t, c, `{"query":"report"}`); len(got.Tools) != 5 || got.Omitted != nil || got.Tools[0].Icons != nil {
		t.Errorf("found %d, omitted %q", len(got.Tools), got.Omitted)
	}
	if got := search(t, c, `{"query":"report","limit":20}`); len(got.Tools) != 6 || len(got.Omitted) != 14 {
		t.Errorf("found %d, omitted %q", len(got.Tools), got.Omitted)
	}
	if got := search(t, c, `{"query":"report 7","limit":1}`); len(got.Tools) != 0 || len(got.Omitted) != 1 || got.Omitted[0] != "report_7" {
		t.Errorf("found %d, omitted %q", len(got.Tools), got.Omitted)
	}
}

func nothing(context.Context, *mcp.Request) (mcp.Result, error) { return &mcp.CallToolResult{}, nil }

// What a caller may not see is not found, not pinned, and not called.
func TestVisibility(t *testing.T) {
	mux := office(&toolsearch.Options{Pinned: []string{"help", "send-mail"}})
	mux.Use(middleware.Visible(func(ctx context.Context, _ mcp.Kind, name string) bool {
		return name != "send-mail" || mcp.PrincipalFromContext(ctx).HasScope("mail")
	}))
	for scope, want := range map[string][3]string{
		"mail": {"search_tools call_tool help send-mail", "send-mail", "send-mailmap[]"},
		"none": {"search_tools call_tool help", "", `there is no tool "send-mail"; search_tools finds the names of tools`},
	} {
		client := mcptest.Client{Principal: &mcp.Principal{Subject: "ann", Scopes: []string{scope}}}
		client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
			got := [3]string{listed(t, c), found(t, c, `{"query":"send mail to somebody"}`), call(t, c, "send-mail", `{}`)}
			if got != want {
				t.Errorf("%s: got %q, want %q", scope, got, want)
			}
		})
	}
}

// A tool that is added is found, and one that is removed is not.
func TestListChanges(t *testing.T) {
	mux := office(nil)
	c := mcptest.Connect(t, mux)
	if got := found(t, c, `{"query":"translate"}`); got != "" {
		t.Errorf("found %q", got)
	}
	mux.Tool("translate", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
	if got := found(t, c, `{"query":"translate"}`); got != "translate" {
		t.Errorf("found %q", got)
	}
	mux.RemoveTool("translate")
	if got := found(t, c, `{"query":"translate"}`); got != "" {
		t.Errorf("found %q", got)
	}
}

// A server without tools, and one with tools of these names, can be searched as well.
func TestOddServers(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(toolsearch.New(&toolsearch.Options{Pinned: []string{"a"}}))
	mux.Prompt("p", mcp.PromptFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
	for _, name := range []string{"tools/list", "search"} {
		var err error
		if name == "search" {
			_, err = mux.ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "search_tools", Arguments: []byte(`{"query":"a"}`)}))
		} else {
			_, err = mux.ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodListTools, nil))
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	mux.Tool("search_tools", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "its own", nil }, nil))
	c := mcptest.Connect(t, mux)
	if got := found(t, c, `{"query":"search tools"}`); got != "" {
		t.Errorf("found %q", got)
	}
	if got := call(t, c, "search_tools", `{}`); !strings.Contains(got, "called by itself") {
		t.Errorf("got %q", got)
	}
}

// If the list of a server fails, so do searches and lists that need it. Its tools stay callable.
func TestListThatFails(t *testing.T) {
	mux := office(&toolsearch.Options{Pinned: []string{"help"}})
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListTools {
				return nil, mcp.Errorf(mcp.CodeInternalError, "the server is down")
			}
			return next.ServeMCP(ctx, req)
		})
	})
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		_, searching := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "search_tools", Arguments: []byte(`{"query":"help"}`)})
		_, listing := c.ListTools(t.Context(), nil)
		for _, err := range []error{searching, listing} {
			if err == nil || !strings.Contains(err.Error(), "the server is down") {
				t.Errorf("got %v", err)
			}
		}
		if got := call(t, c, "help", `{}`); got != "helpmap[]" {
			t.Errorf("got %q", got)
		}
	})
}

// A Ranker of one's own decides the order, but not what a caller sees.
func TestRank(t *testing.T) {
	rank := func(ctx context.Context, query string, tools []*mcp.Tool) ([]*mcp.Tool, error) {
		switch query {
		case "fail":
			return nil, errors.New("the index is being built")
		case "foreign":
			return []*mcp.Tool{{Name: "foreign"}, tools[0], tools[0], nil, tools[1]}, nil
		}
		return tools, nil
	}
	c := mcptest.Connect(t, office(&toolsearch.Options{Rank: rank}))
	if got := found(t, c, `{"query":"all","limit":3}`); got != "HTTPRequest create_issue help" {
		t.Errorf("found %q", got)
	}
	if got := found(t, c, `{"query":"foreign"}`); got != "HTTPRequest create_issue" {
		t.Errorf("found %q", got)
	}
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "search_tools", Arguments: []byte(`{"query":"fail"}`)})
	if err != nil || !res.IsError || textOf(res) != "the index is being built" {
		t.Errorf("got %v, %v", res, err)
	}
}

func TestMistakes(t *testing.T) {
	for name, mistake := range map[string]func(){
		"own":    func() { toolsearch.New(&toolsearch.Options{Pinned: []string{"call_tool"}}) },
		"empty":  func() { toolsearch.New(&toolsearch.Options{Pinned: []string{""}}) },
		"single": func() { mcp.NewMux("m", "v1", quiet()).With(toolsearch.New(nil)).Tool("t", mcp.HandlerFunc(nothing)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("there was no panic")
				}
			}()
			mistake()
		})
	}
}

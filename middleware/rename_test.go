// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// saying returns a server with tools that return their names and the argument q.
func saying(names ...string) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	for _, name := range names {
		mux.Tool(name, mcp.ToolFunc(func(_ context.Context, in map[string]string) (string, error) {
			return name + " " + in["q"], nil
		}, nil))
	}
	return mux
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
	slices.Sort(names)
	return strings.Join(names, " ")
}

// Calling a listed name reaches the tool that is listed under it. Former names, and names
// that are used twice, reach nothing else.
func TestRename(t *testing.T) {
	for name, test := range map[string]struct {
		rename mcp.Middleware
		listed string
		calls  map[string]string // "" means that there is no such tool
	}{
		"by a map": {
			middleware.Rename(map[string]string{"search": "find", "x": "y"}), "find get put",
			map[string]string{"find": "search a", "get": "get a", "search": "", "x": "", "y": "", "none": ""},
		},
		"a swap": {
			middleware.Rename(map[string]string{"get": "put", "put": "get"}), "get put search",
			map[string]string{"get": "put a", "put": "get a"},
		},
		"onto another": {
			middleware.Rename(map[string]string{"search": "get"}), "get put",
			map[string]string{"get": "search a", "search": ""},
		},
		"by functions": {
			middleware.RenameFunc(strings.ToUpper, strings.ToLower), "GET PUT SEARCH",
			map[string]string{"GET": "get a", "get": "", "gEt": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			renamed := mcp.NewMux("renamed", "v1", quiet())
			renamed.With(test.rename).Mount("in_", saying("get", "put", "search"))
			mcptest.Run(t, renamed, func(t *testing.T, c *mcp.Conn) {
				want := "in_" + strings.ReplaceAll(test.listed, " ", " in_")
				if got := listed(t, c); got != want {
					t.Errorf("listed %q, want %q", got, want)
				}
				for name, want := range test.calls {
					res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "in_" + name, Arguments: []byte(`{"q":"a"}`)})
					switch {
					case want == "":
						if wantCode(t, err, mcp.CodeInvalidParams); !strings.Contains(fmt.Sprint(err), `"in_`+name+`"`) {
							t.Errorf("%s: got %v", name, err)
						}
					case err != nil || textOf(t, res) != want:
						t.Errorf("%s: got %v, %v, want %s", name, res, err, want)
					}
				}
			})
		})
	}
}

// Questions continue under the new name, and members unknown to this package are passed on.
func TestRenameKeepsTheRequest(t *testing.T) {
	type form struct {
		Name string `json:"name"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.Rename(map[string]string{"greet": "hello"}))
	mux.Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		f, err := mcp.Elicit[form](ctx, "name", "Who are you?")
		var vendor string
		mcp.RequestFromContext(ctx).Meta().Get("example.com/x", &vendor)
		return vendor + " " + f.Name, err
	}, nil))
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(form{"Ada"}), nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		p := &mcp.CallToolParams{Name: "hello"}
		p.Meta.Set("example.com/x", "dear")
		if res, err := c.CallTool(t.Context(), p); err != nil || textOf(t, res) != "dear Ada" {
			t.Errorf("got %v, %v", res, err)
		}
	})
}

func TestRenamePanics(t *testing.T) {
	mustPanic(t, "Rename", func() { middleware.Rename(map[string]string{"a": "c", "b": "c"}) })
	mustPanic(t, "Rename", func() { middleware.Rename(map[string]string{"a": ""}) })
	mustPanic(t, "RenameFunc", func() { middleware.RenameFunc(nil, strings.ToLower) })
}

// The tools of a mounted server get names that a model can tell apart, and unwanted tools
// are removed.
func ExampleRename() {
	tool := func(text string) mcp.Handler {
		return mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return text, nil }, nil)
	}
	issues := mcp.NewMux("issues", "v1.0.0", nil)
	issues.Tool("search", tool("found 3"))
	issues.Tool("delete_all", tool("gone"))

	mux := mcp.NewMux("gateway", "v1.0.0", nil)
	mux.With(
		middleware.Rename(map[string]string{"search": "find_issues"}),
		middleware.Deny(mcp.KindTool, "delete_*"),
	).Mount("github_", issues)

	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for tool, err := range conn.Tools(ctx, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(tool.Name)
	}
	fmt.Println(mcp.Call[string](ctx, conn, "github_find_issues", nil))
	// Output:
	// github_find_issues
	// found 3 <nil>
}

// Names with dots are replaced by names that every model provider accepts.
func ExampleRenameFunc() {
	underscores := func(name string) string { return strings.ReplaceAll(name, ".", "__") }
	dots := func(name string) string { return strings.ReplaceAll(name, "__", ".") }

	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Use(middleware.RenameFunc(underscores, dots))
	mux.Tool("issues.search", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "found 3", nil }, nil))

	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "issues__search", nil))
	// Output: found 3 <nil>
}

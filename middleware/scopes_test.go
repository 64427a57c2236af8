// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// below lets "a" imply "a:…".
func below(granted, required string) bool {
	return granted == required || strings.HasPrefix(required, granted+":")
}

func TestRequireScopes(t *testing.T) {
	exact := middleware.RequireScopes("notes:read", "notes:write")
	levels := middleware.RequireScopesBy(below, "notes:read", "notes:write")
	for name, test := range map[string]struct {
		by     mcp.Middleware
		caller *mcp.Principal
		passes bool
	}{
		"all":                {exact, &mcp.Principal{Scopes: []string{"notes:write", "x", "notes:read"}}, true},
		"one is missing":     {exact, &mcp.Principal{Scopes: []string{"notes:write"}}, false},
		"none":               {exact, &mcp.Principal{}, false},
		"nobody":             {exact, nil, false},
		"not by levels":      {exact, &mcp.Principal{Scopes: []string{"notes"}}, false},
		"by levels":          {levels, &mcp.Principal{Scopes: []string{"notes"}}, true},
		"other level":        {levels, &mcp.Principal{Scopes: []string{"note", "notes:rea"}}, false},
		"one level missing":  {levels, &mcp.Principal{Scopes: []string{"notes:read"}}, false},
		"nobody by levels":   {levels, nil, false},
		"all, one by levels": {levels, &mcp.Principal{Scopes: []string{"notes:read", "notes:write"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{res: mcp.TextResult("")}
			_, err := test.by(s).ServeMCP(t.Context(), as(test.caller, call("t")))
			if (err == nil) != test.passes || (s.calls == 1) != test.passes {
				t.Fatalf("got %v, the handler was reached %d times", err, s.calls)
			}
			var scopes *mcp.ScopeError
			if !test.passes && (!errors.As(err, &scopes) || !slices.Equal(scopes.Required, []string{"notes:read", "notes:write"})) {
				t.Errorf("got %v", err)
			}
		})
	}
	mustPanic(t, "RequireScopes()", func() { middleware.RequireScopes() })
	mustPanic(t, "RequireScopesBy(nil)", func() { middleware.RequireScopesBy(nil, "a") })
}

// Around a tool it protects the tool, even where it is mounted, and nothing else.
func TestRequireScopesOfOneTool(t *testing.T) {
	child := mcp.NewMux("child", "v1", quiet())
	child.With(middleware.RequireScopes("admin")).Tool("reset", says("done"))
	child.Tool("look", says("seen"))
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Mount("in_", child)
	for scope, passes := range map[string]bool{"admin": true, "user": false} {
		client := &mcptest.Client{Principal: &mcp.Principal{Subject: "s", Scopes: []string{scope}}}
		client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
			_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "in_reset"})
			want := mcp.CodeInsufficientScope
			if passes {
				want = 0
			}
			wantCode(t, err, want)
			var coded *mcp.Error
			if errors.As(err, &coded) && string(coded.Data) != `{"requiredScopes":["admin"]}` {
				t.Errorf("the client is told %s", coded.Data)
			}
			if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "in_look"}); err != nil {
				t.Error(err)
			}
		})
	}
}

func ExampleRequireScopesBy() {
	below := func(granted, required string) bool {
		return granted == required || strings.HasPrefix(required, granted+":")
	}
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.With(middleware.RequireScopesBy(below, "notes:write")).
		Tool("write", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "written", nil }, nil))

	req, err := mcp.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "write"})
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Principal = &mcp.Principal{Subject: "ann", Scopes: []string{"notes"}}
	_, err = mux.ServeMCP(context.Background(), req)
	fmt.Println(err)
	// Output: <nil>
}

func ExampleRequireScopes() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.With(middleware.RequireScopes("notes:write")).
		Tool("write", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "written", nil }, nil))

	req, err := mcp.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "write"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, scope := range []string{"notes:read", "notes:write"} {
		req.Principal = &mcp.Principal{Subject: "ann", Scopes: []string{scope}}
		_, err = mux.ServeMCP(context.Background(), req)
		fmt.Println(err)
	}
	// Output:
	// the caller was not granted the scopes that this needs: notes:write (code 403): mcp: the operation needs the scopes notes:write
	// <nil>
}

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
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

func TestRequireScopes(t *testing.T) {
	exact := middleware.RequireScopes("notes:read", "notes:write")
	for name, test := range map[string]struct {
		caller *mcp.Principal
		passes bool
	}{
		"all":            {&mcp.Principal{Scopes: []string{"notes:write", "x", "notes:read"}}, true},
		"one is missing": {&mcp.Principal{Scopes: []string{"notes:write"}}, false},
		"none":           {&mcp.Principal{}, false},
		"nobody":         {nil, false},
		"a prefix":       {&mcp.Principal{Scopes: []string{"notes"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{res: mcp.TextResult("")}
			_, err := exact(s).ServeMCP(t.Context(), as(test.caller, call("t")))
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
}

// Applied to one tool, RequireScopes protects that tool, even where it is mounted, and
// nothing else.
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

// notes returns a server some of whose items need a scope, including those of a mounted
// server.
func notes() *mcp.Mux {
	inner := hidingNothing("reset")
	mux := hidingNothing("admin", "public")
	mux.Mount("admin_", inner)
	mux.Use(middleware.RequireScopesFunc(func(_ mcp.Kind, name string) []string {
		if strings.Contains(name, "admin") {
			return []string{"notes:admin"}
		}
		return nil
	}))
	return mux
}

// hidingNothing returns a server with an item of every kind for each name.
func hidingNothing(names ...string) *mcp.Mux {
	mux := mcp.NewMux("notes", "v1", &mcp.MuxOptions{Logger: quiet().Logger, ListCache: mcp.CacheFor(0, mcp.CachePublic)})
	for _, name := range names {
		mux.Tool(name, says(name))
		mux.Prompt(name, mcp.PromptFunc(func(context.Context, struct {
			X string `json:"x"`
		}) (string, error) {
			return name, nil
		}, nil))
		mux.Resource("test:///"+name, mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return name, nil }, nil))
		mux.Resource("test:///"+name+"/{x}", mcp.ResourceFunc(func(context.Context, struct {
			X string `json:"x"`
		}) (string, error) {
			return name, nil
		}, nil))
	}
	return mux
}

// Items and their completions are hidden from callers that lack the scopes.
func TestFindingU2HideAndRefuseByScope(t *testing.T) {
	requests := map[string]func(name string) any{
		mcp.MethodCallTool:     func(name string) any { return &mcp.CallToolParams{Name: name} },
		mcp.MethodGetPrompt:    func(name string) any { return &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"x": "1"}} },
		mcp.MethodReadResource: func(name string) any { return &mcp.ReadResourceParams{URI: "test:///" + name + "/1"} },
		mcp.MethodComplete: func(name string) any {
			return &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: name}, Argument: mcp.CompleteArgument{Name: "x"}}
		},
	}
	for scope, passes := range map[string]bool{"notes:admin": true, "notes:read": false, "notes": false} {
		client := &mcptest.Client{Principal: &mcp.Principal{Subject: "s", Scopes: []string{scope}}}
		client.Run(t, notes(), func(t *testing.T, c *mcp.Conn) {
			for method, params := range requests {
				if _, err := request(t, c, method, params("public")); err != nil {
					t.Errorf("%s: %v", method, err)
				}
				_, err := request(t, c, method, params("admin"))
				want := mcp.CodeInsufficientScope
				if passes {
					want = 0
				}
				wantCode(t, err, want)
				if coded := new(mcp.Error); errors.As(err, &coded) && string(coded.Data) != `{"requiredScopes":["notes:admin"]}` {
					t.Errorf("%s: the client is told %s", method, coded.Data)
				}
			}
			for _, method := range []string{mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates} {
				res, err := request(t, c, method, nil)
				if err != nil {
					t.Fatalf("%s: %v", method, err)
				}
				if raw := encoded(method, res); strings.Contains(raw, "admin") != passes || !strings.Contains(raw, "public") || strings.Contains(raw, `"cacheScope":"public"`) {
					t.Errorf("%s with %s: %s", method, scope, raw)
				}
			}
			uris := []string{"test:///%61dmin", "test:///admin", "test:///public"}
			s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: uris}, func(mcp.Change) {})
			if err != nil || slices.Contains(s.Accepted().ResourceSubscriptions, "test:///admin") != passes || !slices.Contains(s.Accepted().ResourceSubscriptions, "test:///public") {
				t.Errorf("accepted %+v, %v", s, err)
			}
		})
	}
	mustPanic(t, "RequireScopesFunc(nil)", func() { middleware.RequireScopesFunc(nil) })
}

// A URI is checked in each of its forms, and the error names the scopes for all of them.
func TestRequireScopesFuncSpellings(t *testing.T) {
	client := &mcptest.Client{Principal: &mcp.Principal{Subject: "s", Scopes: []string{"notes"}}}
	c := client.Connect(t, notes())
	_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test:///%61dmin/1"})
	if coded := new(mcp.Error); !errors.As(err, &coded) || string(coded.Data) != `{"requiredScopes":["notes:admin"]}` {
		t.Errorf("got %v", err)
	}
}

func ExampleRequireScopesFunc() {
	scopes := map[string][]string{"delete": {"notes:write"}, "export": {"notes:write", "notes:export"}}
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Use(middleware.RequireScopesFunc(func(kind mcp.Kind, name string) []string {
		if kind != mcp.KindTool {
			return nil
		}
		return scopes[name]
	}))
	for _, name := range []string{"delete", "export", "search"} {
		mux.Tool(name, mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "done", nil }, nil))
	}

	req, err := mcp.NewRequest(mcp.MethodListTools, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Principal = &mcp.Principal{Subject: "ann", Scopes: []string{"notes:write"}}
	res, err := mux.ServeMCP(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range res.(*mcp.ListToolsResult).Tools {
		fmt.Println(tool.Name)
	}
	// Output:
	// delete
	// search
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

// scopeReader is a server whose resources depend on the scopes of the caller's token and
// take a second to read.
var scopeReader = mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	<-time.After(time.Second)
	ttl := int64(60_000)
	text := "scopes: " + strings.Join(req.Principal.Scopes, " ")
	return &mcp.ReadResourceResult{
		Cacheable: mcp.Cacheable{TTLMs: &ttl, CacheScope: mcp.CachePrivate},
		Contents:  []*mcp.ResourceContents{{URI: req.Name(), Text: text}},
	}, nil
})

// A result for one token is not returned for another token of the same caller with other
// scopes.
func TestScopesAreNotShared(t *testing.T) {
	for name, mw := range map[string]mcp.Middleware{
		"Cache": middleware.NewCache(nil).Middleware, "Singleflight": middleware.Singleflight(),
	} {
		synctest.Test(t, func(t *testing.T) {
			h := mw(scopeReader)
			read := func(scopes ...string) {
				req, err := mcp.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "notes://all"})
				if err != nil {
					t.Error(err)
					return
				}
				req.Principal = &mcp.Principal{Issuer: "us", Subject: "ada", Scopes: scopes}
				res, err := h.ServeMCP(t.Context(), req)
				if err != nil {
					t.Error(err)
					return
				}
				if got, want := res.(*mcp.ReadResourceResult).Contents[0].Text, "scopes: "+strings.Join(scopes, " "); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			go read("admin", "read")
			synctest.Wait()
			read("read")
			read("admin", "read")
			read()
		})
	}
}

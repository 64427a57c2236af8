// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// hiding is a server with items for admins only.
func hiding() *mcp.Mux {
	mux := mcp.NewMux("hiding", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(0, mcp.CachePublic)})
	mux.Use(middleware.Visible(func(ctx context.Context, _ middleware.Kind, name string) bool {
		p := mcp.PrincipalFromContext(ctx)
		return !strings.Contains(name, "admin") || p != nil && p.Subject == "root"
	}))
	for _, name := range []string{"admin", "public"} {
		mux.Tool(name, mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return name, nil }, nil))
		mux.Prompt(name, mcp.PromptFunc(func(context.Context, struct{}) (string, error) { return name, nil }, nil))
		mux.Resource("test:///"+name, mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return name, nil }, nil))
		mux.Resource("test:///"+name+"/{x}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return name, nil }, nil))
	}
	return mux
}

// T45: a hidden item is in no list, and requests for it fail exactly as for an unknown one.
func TestVisible(t *testing.T) {
	requests := []struct {
		method string
		params func(name string) any
	}{
		{mcp.MethodCallTool, func(name string) any { return &mcp.CallToolParams{Name: name} }},
		{mcp.MethodGetPrompt, func(name string) any { return &mcp.GetPromptParams{Name: name} }},
		{mcp.MethodReadResource, func(name string) any { return &mcp.ReadResourceParams{URI: "test:///" + name} }},
		{mcp.MethodReadResource, func(name string) any { return &mcp.ReadResourceParams{URI: "test:///" + name + "/x"} }},
		{mcp.MethodComplete, func(name string) any {
			return &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: name}, Argument: mcp.CompleteArgument{Name: "x"}}
		}},
		{mcp.MethodComplete, func(name string) any {
			return &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/resource", URI: "test:///" + name + "/{x}"}, Argument: mcp.CompleteArgument{Name: "x"}}
		}},
	}
	lists := []string{mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates}
	for subject, sees := range map[string]bool{"root": true, "guest": false} {
		client := &mcptest.Client{Principal: &mcp.Principal{Subject: subject}}
		client.Run(t, hiding(), func(t *testing.T, c *mcp.Conn) {
			for _, r := range requests {
				_, hidden := request(t, c, r.method, r.params("admin"))
				_, absent := request(t, c, r.method, r.params("nobody"))
				if absent == nil || (hidden == nil) != sees {
					t.Fatalf("%s %s: hidden %v, absent %v", subject, r.method, hidden, absent)
				}
				if same := strings.ReplaceAll(fmt.Sprintf("%+v", absent), "nobody", "admin"); !sees && fmt.Sprintf("%+v", hidden) != same {
					t.Errorf("%s: what is hidden answers %v, what is absent %v", r.method, hidden, absent)
				}
			}
			for _, method := range lists {
				res, err := request(t, c, method, nil)
				if err != nil {
					t.Fatalf("%s: %v", method, err)
				}
				raw := encoded(method, res)
				if strings.Contains(raw, "admin") != sees || !strings.Contains(raw, "public") {
					t.Errorf("%s sees in %s: %s", subject, method, raw)
				}
				if strings.Contains(raw, `"cacheScope":"public"`) {
					t.Errorf("%s is public: %s", method, raw)
				}
			}
		})
	}
}

// A subscription has no updates of hidden resources.
func TestVisibleListen(t *testing.T) {
	c := (&mcptest.Client{Principal: &mcp.Principal{Subject: "guest"}}).Connect(t, hiding())
	s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"test:///admin", "test:///public"}}, func(mcp.Change) {})
	if err != nil || fmt.Sprint(s.Accepted.ResourceSubscriptions) != "[test:///public]" {
		t.Errorf("accepted %+v, %v", s, err)
	}
}

func ExampleVisible() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Use(middleware.Visible(func(ctx context.Context, _ middleware.Kind, name string) bool {
		return !strings.HasPrefix(name, "admin_") || mcp.PrincipalFromContext(ctx).HasScope("admin")
	}))
	mux.Tool("admin_reset", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	_, err = conn.CallTool(ctx, &mcp.CallToolParams{Name: "admin_reset"})
	fmt.Println(err)
	// Output: unknown tool "admin_reset" (code -32602)
}

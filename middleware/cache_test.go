// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// counted is a handler that counts requests and allows its results to be cached.
type counted struct {
	n     int
	hints mcp.Cacheable
	err   error
}

func (h *counted) ServeMCP(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	h.n++
	if h.err != nil {
		return nil, h.err
	}
	if req.Method == mcp.MethodReadResource {
		return &mcp.ReadResourceResult{Cacheable: h.hints}, nil
	}
	if req.Method == mcp.MethodCallTool {
		return &mcp.CallToolResult{}, nil
	}
	return &mcp.ListToolsResult{Cacheable: h.hints}, nil
}

func TestCache(t *testing.T) {
	minute := mcp.CacheFor(time.Minute, mcp.CachePrivate)
	ask := func(t *testing.T, h mcp.Handler, subject, method string, params any) {
		t.Helper()
		req := mcptest.NewRequest(method, params)
		if subject != "" {
			req.Principal = &mcp.Principal{Subject: subject}
		}
		do(t, h, req)
	}
	list := func(t *testing.T, h mcp.Handler, subject string) {
		t.Helper()
		ask(t, h, subject, mcp.MethodListTools, nil)
	}
	state := "s"
	for name, test := range map[string]struct {
		hints mcp.Cacheable
		want  int
		do    func(t *testing.T, c *middleware.Cache, h mcp.Handler)
	}{
		"the same again": {minute, 1, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) { list(t, h, ""); list(t, h, "") }},
		"after its time": {minute, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) {
			list(t, h, "")
			<-time.After(time.Minute)
			list(t, h, "")
		}},
		"of somebody else": {minute, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) { list(t, h, "ann"); list(t, h, "bob") }},
		"public":           {mcp.CacheFor(time.Minute, mcp.CachePublic), 1, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) { list(t, h, "ann"); list(t, h, "bob") }},
		"nothing said":     {mcp.Cacheable{}, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) { list(t, h, ""); list(t, h, "") }},
		"no time":          {mcp.CacheFor(0, mcp.CachePublic), 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) { list(t, h, ""); list(t, h, "") }},
		"changed": {minute, 2, func(t *testing.T, c *middleware.Cache, h mcp.Handler) {
			list(t, h, "")
			c.Changed(mcp.Change{Method: mcp.NotificationToolsListChanged})
			list(t, h, "")
		}},
		"something else": {minute, 1, func(t *testing.T, c *middleware.Cache, h mcp.Handler) {
			list(t, h, "")
			c.Changed(mcp.Change{Method: mcp.NotificationPromptsListChanged})
			list(t, h, "")
		}},
		"tools are not cached": {minute, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) {
			ask(t, h, "", mcp.MethodCallTool, nil)
			ask(t, h, "", mcp.MethodCallTool, nil)
		}},
		"another page": {minute, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) {
			empty := ""
			list(t, h, "")
			ask(t, h, "", mcp.MethodListTools, &mcp.ListParams{Cursor: &empty})
		}},
		"resources, by URI": {minute, 3, func(t *testing.T, c *middleware.Cache, h mcp.Handler) {
			for _, uri := range []string{"a:", "b:", "a:"} {
				ask(t, h, "", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri})
			}
			c.Changed(mcp.Change{Method: mcp.NotificationResourceUpdated, URI: "a:"})
			ask(t, h, "", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "a:"})
			ask(t, h, "", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "b:"})
		}},
		"a question's retry": {minute, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) {
			for range 2 {
				ask(t, h, "", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "a:", Retry: mcp.Retry{RequestState: &state}})
			}
		}},
		"no more than allowed": {minute, 4, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) {
			for _, uri := range []string{"a:", "b:", "c:", "a:"} {
				ask(t, h, "", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri})
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &counted{hints: test.hints}
				cache := middleware.NewCache(&middleware.CacheOptions{MaxEntries: 2})
				test.do(t, cache, cache.Middleware(server))
				if server.n != test.want {
					t.Errorf("the server was asked %d times, want %d", server.n, test.want)
				}
			})
		})
	}
}

// If a cursor is rejected, the list is requested from its start.
func TestCacheRefusedCursor(t *testing.T) {
	server := &counted{hints: mcp.CacheFor(time.Minute, mcp.CachePrivate)}
	h := middleware.NewCache(nil).Middleware(server)
	do(t, h, mcptest.NewRequest(mcp.MethodListTools, nil))
	server.err = mcp.Errorf(mcp.CodeInvalidParams, "no such cursor")
	next := "next"
	do(t, h, mcptest.NewRequest(mcp.MethodListTools, &mcp.ListParams{Cursor: &next}))
	server.err = nil
	do(t, h, mcptest.NewRequest(mcp.MethodListTools, nil))
	if server.n != 3 {
		t.Errorf("the server was asked %d times, want 3", server.n)
	}
}

func ExampleCache() {
	cache := middleware.NewCache(nil)
	client := mcp.NewClient("client", "v1.0.0", nil)
	mux := mcp.NewMux("server", "v1.0.0", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Minute, mcp.CachePrivate)})
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListTools {
				fmt.Println("the server was asked")
			}
			return next.ServeMCP(ctx, req)
		})
	})
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	ctx := context.Background()
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	conn.Use(cache.Middleware)
	changed := make(chan mcp.Change)
	_, err = conn.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(change mcp.Change) {
		cache.Changed(change)
		changed <- change
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	list := func() {
		res, err := conn.ListTools(ctx, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("tools:", len(res.Tools))
	}
	list()
	list()
	mux.Tool("bye", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "bye", nil }, nil))
	<-changed
	list()
	// Output:
	// the server was asked
	// tools: 1
	// tools: 1
	// the server was asked
	// tools: 2
}

// do serves a request and ignores the outcome.
func do(t *testing.T, h mcp.Handler, req *mcp.Request) {
	t.Helper()
	_, _, _ = mcptest.Do(t, h, req) //nolint:dogsled // that is the point
}

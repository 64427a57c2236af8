// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// A caller of a gateway that hears of a change gets what has changed, also if the gateway's own
// subscription is slower than that of the caller.
func TestCacheOfAGatewayIsNotBehindItsCallers(t *testing.T) {
	distant := mcp.NewMux("distant", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Hour, mcp.CachePublic)})
	distant.Tool("first", noop())
	upstream := mcptest.Connect(t, distant)
	cache, late := middleware.NewCache(nil), make(chan struct{})
	upstream.Use(cache.Middleware)
	_, err := upstream.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(change mcp.Change) {
		<-late
		cache.Changed(change)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer close(late)
	gateway := mcp.NewMux("gateway", "v1", quiet())
	gateway.Mount("d_", upstream)
	conn := mcptest.Connect(t, gateway)
	changes := listen(t, conn, mcp.SubscriptionFilter{ToolsListChanged: true})
	for want := 1; want <= 2; want++ {
		if res, err := conn.ListTools(t.Context(), nil); err != nil || len(res.Tools) != want {
			t.Fatalf("listed %+v, %v; want %d tools", res, err, want)
		}
		if want == 1 {
			distant.Tool("second", noop())
			<-changes
		}
	}
}

// The update of a directory stands for what is below it, as after a break in the connection:
// nothing else tells that a file below it has changed.
func TestCacheOfFilesBelowADirectory(t *testing.T) {
	cache, reads := middleware.NewCache(nil), map[string]int{}
	h := cache.Middleware(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		reads[req.Name()]++
		return &mcp.ReadResourceResult{Cacheable: mcp.CacheFor(time.Hour, mcp.CachePublic)}, nil
	}))
	want := map[string]int{"file:///d/": 2, "file:///d/a": 2, "file:///d/b/c": 2, "file:///da": 1, "file:///": 1}
	for range 2 {
		for uri := range want {
			do(t, h, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri}))
		}
		cache.Changed(mcp.Change{Method: mcp.NotificationResourceUpdated, URI: "file:///d/"})
	}
	if !maps.Equal(reads, want) {
		t.Errorf("read %v, want %v", reads, want)
	}
}

// A kept result says for how long it is still fresh: a gateway passes it on to clients, which keep
// it for that long.
func TestCachePassesOnWhatRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := middleware.NewCache(nil).Middleware(lists(func() string { return "t" }))
		for _, want := range []time.Duration{time.Hour, 40 * time.Minute, 20 * time.Minute, time.Hour} {
			res, err := h.ServeMCP(t.Context(), outgoing(t, mcp.MethodListTools, nil))
			list, ok := res.(*mcp.ListToolsResult)
			if err != nil || !ok || len(list.Tools) != 1 || *list.TTLMs != want.Milliseconds() || list.CacheScope != mcp.CachePublic {
				t.Errorf("%+v, %v, want a TTL of %v", res, err, want)
			}
			<-time.After(20 * time.Minute)
		}
	})
}

// A client whose headers a server refuses looks at the tool as it is now, and not as a Cache has
// it, which was refused already.
func TestCacheAndRefusedHeaders(t *testing.T) {
	server := mcp.NewMux("m", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Hour, mcp.CachePublic)})
	server.Tool("t", noop())
	lists, calls := 0, 0
	server.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case mcp.MethodListTools:
				lists++
			case mcp.MethodCallTool:
				if calls++; lists < 2 {
					return nil, mcp.Errorf(mcp.CodeHeaderMismatch, "header Mcp-Param-New: the header is missing")
				}
			}
			return next.ServeMCP(ctx, req)
		})
	})
	conn := mcptest.Connect(t, server)
	cache := middleware.NewCache(nil)
	cache.Changed(mcp.Change{Method: mcp.NotificationToolsListChanged})
	conn.Use(cache.Middleware)
	if _, err := conn.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	server.Tool("new", noop())
	if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"}); err != nil || lists != 2 || calls != 2 {
		t.Errorf("%v after %d lists and %d calls", err, lists, calls)
	}
	if res, err := conn.ListTools(t.Context(), nil); err != nil || len(res.Tools) != 2 || lists != 2 {
		t.Errorf("then listed %+v, %v, after %d lists", res, err, lists)
	}
}

// What a connection looks up because a result does not fit the schema of its tool does not come
// from the cache either.
func TestCacheAndChangedOutput(t *testing.T) {
	server := mcp.NewMux("m", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Hour, mcp.CachePublic)})
	server.Tool("t", mcp.ToolFunc(func(context.Context, struct{}) (struct{ N int }, error) { return struct{ N int }{1}, nil }, nil))
	conn := mcptest.Connect(t, server)
	conn.Use(middleware.NewCache(nil).Middleware)
	if _, err := conn.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	server.RemoveTool("t")
	server.Tool("t", mcp.ToolFunc(func(context.Context, struct{}) (struct{ N string }, error) { return struct{ N string }{"one"}, nil }, nil))
	for range 2 {
		if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"}); err != nil {
			t.Error(err)
		}
	}
}

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

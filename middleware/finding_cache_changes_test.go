// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// A second tool is there once its announcement has arrived, although the list may be kept
// for an hour: in every era and over every transport, through one subscription.
func TestFindingU5CacheHearsOfChanges(t *testing.T) {
	var mux *mcp.Mux
	newMux := func(*testing.T) mcp.Handler {
		mux = mcp.NewMux("m", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Hour, mcp.CachePublic)})
		mux.Tool("first", noop())
		return mux
	}
	mcptest.RunNew(t, newMux, func(t *testing.T, c *mcp.Conn) {
		cache := middleware.NewCache(nil)
		c.Use(cache.Middleware)
		changed := make(chan mcp.Change, 10)
		_, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(change mcp.Change) {
			cache.Changed(change)
			changed <- change
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Ping(t.Context()) // a legacy server has then read notifications/initialized
		for want := 1; want <= 2; want++ {
			if res, err := c.ListTools(t.Context(), nil); err != nil || len(res.Tools) != want {
				t.Fatalf("listed %+v, %v; want %d tools", res, err, want)
			}
			if want == 1 {
				mux.Tool("second", noop())
				<-changed
			}
		}
	})
}

// noop is a tool that does nothing.
func noop() mcp.Handler {
	return mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil)
}

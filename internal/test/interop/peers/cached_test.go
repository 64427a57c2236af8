// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"math"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// The official TypeScript SDK caches results that psi marks as fresh, even forever, until
// psi reports a change. Its first request ID is 0.
func TestCachedByTypeScript(t *testing.T) {
	hour := mcp.CacheFor(time.Hour, mcp.CachePrivate)
	mux := mcp.NewMux("cached", "v1", &mcp.MuxOptions{Logger: logger(t), ListCache: hour})
	resource := func(uri string, hints mcp.Cacheable, text func() string) {
		mux.Resource(uri, mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return &mcp.ReadResourceResult{Cacheable: hints, Contents: []*mcp.ResourceContents{{URI: uri, Text: text()}}}, nil
		}))
	}
	var version atomic.Int64
	resource("test://version", hour, func() string { return strconv.FormatInt(version.Load(), 10) })
	forever := int64(math.MaxInt64)
	resource("test://forever", mcp.Cacheable{TTLMs: &forever, CacheScope: mcp.CachePublic}, func() string { return "forever" })
	mux.Tool("count", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "")
		mcp.Progress(ctx, 2, 2, "")
		return "counted", nil
	}, nil))
	mux.Tool("bump", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		version.Add(1)
		mux.ResourceUpdated("test://version")
		mux.Tool("bumped", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
		return "bumped", nil
	}, nil))
	url := serve(t, mcphttp.NewHandler(mux, &mcphttp.Options{Logger: logger(t)}))
	if out, err := node(t, "cached.mjs", url).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

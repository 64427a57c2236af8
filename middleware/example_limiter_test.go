// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/middleware"
)

// A limit shared by several replicas is kept in a store that all of them can reach.
func ExampleNewSharedBucket() {
	shared := store.NewMemory(nil) // in production, an adapter to an engine
	report := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "done", nil }, nil)
	ctx := context.Background()
	for _, replica := range []string{"one", "two"} {
		mux := mcp.NewMux(replica, "v1.0.0", nil)
		limit := middleware.RateLimit(middleware.ByTool, middleware.NewSharedBucket(shared, 1, time.Hour, nil))
		mux.With(limit).Tool("report", report)
		conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = conn.CallTool(ctx, &mcp.CallToolParams{Name: "report"})
		_, limited := mcp.RetryAfter(err)
		fmt.Println(replica, "refuses:", limited)
		_ = conn.Close()
	}
	// Output:
	// one refuses: false
	// two refuses: true
}

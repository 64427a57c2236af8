// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/middleware"
)

// windows is a Limiter that allows a number of requests in each window of time, for all
// replicas that share its values.
type windows struct {
	values store.Values
	most   uint64
	length time.Duration
}

func (w windows) Take(ctx context.Context, key string) (time.Duration, error) {
	now := time.Now()
	start := now.Truncate(w.length)
	var wait time.Duration
	hash := sha256.Sum256([]byte(key)) // keys may have any length
	name := fmt.Sprintf("limit.%x.%d", hash[:16], start.Unix())
	err := store.Update(ctx, w.values, name, w.length, func(old []byte) ([]byte, error) {
		used, _ := binary.Uvarint(old)
		if wait = 0; used >= w.most {
			wait = start.Add(w.length).Sub(now)
			return old, nil
		}
		return binary.AppendUvarint(nil, used+1), nil
	})
	return wait, err
}

// A limit for several replicas is kept where all of them can reach it.
func ExampleLimiter() {
	shared := store.NewMemory(nil) // in production, an adapter to a database
	limit := middleware.RateLimit(middleware.ByTool, windows{shared, 1, 10_000 * time.Hour})
	report := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "done", nil }, nil)
	ctx := context.Background()
	for _, replica := range []string{"one", "two"} {
		mux := mcp.NewMux(replica, "v1.0.0", nil)
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/middleware"
)

// Cache hits and retries by client middleware are traced.
func TestClientTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		ctx := mcptrace.WithClientTrace(t.Context(), &mcptrace.ClientTrace{
			CacheHit: func(i mcptrace.CacheInfo) { got = append(got, "cached "+i.Kind) },
			Retry:    func(i mcptrace.RetryInfo) { got = append(got, "retry "+i.Method+" after "+i.Delay.String()) },
		})
		attempts := 0
		flaky := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			if attempts++; attempts == 1 {
				return nil, errors.New("no luck")
			}
			return &mcp.ListToolsResult{Cacheable: mcp.CacheFor(time.Minute, mcp.CachePrivate)}, nil
		})
		retry := middleware.Retry(&middleware.RetryOptions{Transient: func(error) bool { return true }})
		h := mcp.Chain(flaky, middleware.NewCache(nil).Middleware, retry)
		for range 2 {
			if _, err := h.ServeMCP(ctx, mcptest.NewRequest(mcp.MethodListTools, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != 2 || got[0][:len("retry tools/list after ")] != "retry tools/list after " || got[1] != "cached tools/list" {
			t.Errorf("got %q", got)
		}
	})
}

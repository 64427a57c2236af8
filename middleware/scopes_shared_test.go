// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware"
)

// scopeReader is a server whose resources depend on the scopes of the caller's token, and take
// a second.
var scopeReader = mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	<-time.After(time.Second)
	ttl := int64(60_000)
	text := "scopes: " + strings.Join(req.Principal.Scopes, " ")
	return &mcp.ReadResourceResult{
		Cacheable: mcp.Cacheable{TTLMs: &ttl, CacheScope: mcp.CachePrivate},
		Contents:  []*mcp.ResourceContents{{URI: req.Name(), Text: text}},
	}, nil
})

// A result for a token is not that for another token of the same caller with other scopes.
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

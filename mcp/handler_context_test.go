// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// TestContextWithoutMux: a plain Handler that no Mux is around finds its request and its
// caller in the context, too.
func TestContextWithoutMux(t *testing.T) {
	others := mcp.NewMux("others", "v1", nil)
	handler := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return others.ServeMCP(ctx, req)
		}
		if mcp.RequestFromContext(ctx) != req {
			t.Error("the context has another request")
		}
		p := mcp.PrincipalFromContext(ctx)
		if p == nil || !p.HasScope("write") {
			return mcp.TextResult("nobody"), nil
		}
		return mcp.TextResult(p.Subject), nil
	})
	for _, tt := range []struct {
		principal *mcp.Principal
		want      string
	}{
		{&mcp.Principal{Issuer: "https://issuer.example", Subject: "ann", Scopes: []string{"write"}}, "ann"},
		{nil, "nobody"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			client := mcptest.Client{Principal: tt.principal}
			client.Run(t, handler, func(t *testing.T, c *mcp.Conn) {
				got, err := mcp.Call[string](t.Context(), c, "who", struct{}{})
				if err != nil || got != tt.want {
					t.Errorf("got %q, %v; want %q", got, err, tt.want)
				}
			})
		})
	}
}

// TestNilPrincipal: the methods of a nil Principal answer for a caller that is not
// authenticated.
func TestNilPrincipal(t *testing.T) {
	nobody := mcp.PrincipalFromContext(t.Context())
	if nobody.HasScope("write") || nobody.Is(&mcp.Principal{Subject: "ann"}) || !nobody.Is(nil) {
		t.Error("a nil Principal is somebody")
	}
}

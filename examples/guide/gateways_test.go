// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// userMuxes has a mux for each caller.
type userMuxes map[string]*mcp.Mux

func (m userMuxes) of(p *mcp.Principal) *mcp.Mux { return m[p.Subject] }

func TestMuxPerUser(t *testing.T) {
	muxes := userMuxes{"ada": newMux(), "alan": mcp.NewMux("empty", "v1.0.0", nil)}
	choose := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		caller := req.Principal
		if caller == nil {
			return nil, mcp.Errorf(mcp.CodeInvalidRequest, "the caller is not known")
		}
		return muxes.of(caller).ServeMCP(ctx, req)
	})
	for user, want := range map[string]bool{"ada": true, "alan": false} {
		client := &mcptest.Client{Principal: &mcp.Principal{Subject: user}}
		_, err := mcp.Call[string](t.Context(), client.Connect(t, choose), "greet", nil)
		if (err == nil) != want {
			t.Errorf("%s: %v", user, err)
		}
	}
}

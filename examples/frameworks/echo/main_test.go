// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
)

// TestGreet calls the tool in both eras. The older one has a stream of its own, which needs
// a ResponseWriter that can flush.
func TestGreet(t *testing.T) {
	url := mcptest.Serve(t, newApp())
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		conn := mcptest.Dial(t, mcphttp.NewTransport(url+"/mcp", nil), &mcp.ClientOptions{Version: version})
		if got, err := mcp.Call[string](t.Context(), conn, "greet", greetIn{"Ada"}); err != nil || got != "Hello, Ada!" {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package counters_test

import (
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"

	"example.com/thirdparty/counters"
)

// The method, its result and its notification work in every revision and on every transport.
func TestCounters(t *testing.T) {
	reached := make(chan counters.ReachedParams, 16)
	client := &mcptest.Client{Options: mcp.ClientOptions{
		Extensions:   []*mcp.ClientExtension{counters.Client()},
		Notification: counters.OnReached(func(p counters.ReachedParams) { reached <- p }, nil),
	}}
	newServer := func(*testing.T) mcp.Handler {
		mux := mcp.NewMux("m", "v1.0.0", nil)
		counters.Register(mux, 10)
		return mux
	}
	client.RunNew(t, newServer, func(t *testing.T, c *mcp.Conn) {
		if got := string(c.Server().Capabilities.Extensions[counters.Extension]); got != `{"round":10}` {
			t.Errorf("the server declares %s", got)
		}
		for i, want := range []int{7, 14} {
			if got, err := counters.Add(t.Context(), c, "visits", 7); err != nil || got != want {
				t.Errorf("call %d: got %d, %v", i, got, err)
			}
		}
		if got := <-reached; got != (counters.ReachedParams{Counter: "visits", At: 10}) {
			t.Errorf("got %+v", got)
		}
		if _, err := counters.Add(t.Context(), c, "", 1); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("without a counter: %v", err)
		}
	})
}

// A client that does not declare the extension does not have its method.
func TestWithoutExtension(t *testing.T) {
	mux := mcp.NewMux("m", "v1.0.0", nil)
	counters.Register(mux, 10)
	c := mcptest.Dial(t, mcp.InProcess(mux), nil)
	if _, err := counters.Add(t.Context(), c, "visits", 1); mcp.CodeOf(err) != mcp.CodeMethodNotFound {
		t.Errorf("got %v", err)
	}
}

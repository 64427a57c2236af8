// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

func newServer(name string) *mcp.Mux {
	mux := mcp.NewMux(name, "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "I am " + name + ".", nil }, nil))
	return mux
}

// TestGateway has two servers and one that is down, for which lists wait in vain. In the
// bubble, that takes no time.
func TestGateway(t *testing.T) { synctest.Test(t, testGateway) }

func testGateway(t *testing.T) {
	mux, closeAll := newGateway(t.Context(), map[string]transport.Transport{
		"a_": mcp.InProcess(newServer("a")), "b_": mcp.InProcess(newServer("b")),
		"down_": mcphttp.NewTransport("http://127.0.0.1:1/mcp", nil),
	})
	defer closeAll()
	conn := mcptest.Connect(t, mux)
	for _, name := range []string{"a", "b"} {
		if got, err := mcp.Call[string](t.Context(), conn, name+"_greet", nil); err != nil || got != "I am "+name+"." {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	var names []string
	for tool, err := range conn.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"a_greet", "b_greet"}) {
		t.Errorf("listed %q", names)
	}
}

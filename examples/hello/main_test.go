// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

func TestGreet(t *testing.T) {
	mcptest.Run(t, newMux(), func(t *testing.T, conn *mcp.Conn) {
		got, err := mcp.Call[string](t.Context(), conn, "greet", person{"Ada"})
		if err != nil || got != "Hello, Ada!" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

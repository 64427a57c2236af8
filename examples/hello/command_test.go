// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcpstdio"
)

// TestCommand starts this test as the server, as a host starts a command.
func TestCommand(t *testing.T) {
	if os.Getenv("HELLO") != "" {
		main()
		os.Exit(0)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestCommand$")
	cmd.Env = append(mcpstdio.Environ(), "HELLO=1")
	conn := mcptest.Dial(t, mcpstdio.NewCommand(cmd, nil), nil)
	if got, err := mcp.Call[string](t.Context(), conn, "greet", person{"Ada"}); err != nil || got != "Hello, Ada!" {
		t.Errorf("got %q, %v", got, err)
	}
}

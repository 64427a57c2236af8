// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
)

// A state that was used is refused however it is written the second time.
func TestSecondLookUsedStateWrittenOtherwise(t *testing.T) {
	opts := quiet()
	opts.StateStore = store.NewMemory(nil)
	mux := asking(opts)
	client := new(mcptest.Client)
	asked := tool("ask", `{"n":1}`)
	state := *stateOf(t, mux, client, asked)
	for i, written := range []string{state, state, state + "\n", "\r" + state, state[:8] + "\r\n" + state[8:]} {
		_, _, err := mcptest.Do(t, mux, client.NewRequest(mcp.MethodCallTool, answered(asked, &written)))
		if (err == nil) != (i == 0) {
			t.Errorf("use %d, as %q: got %v", i+1, written, err)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

func TestCount(t *testing.T) {
	mcptest.Run(t, newMux(), func(t *testing.T, c *mcp.Conn) {
		for in, want := range map[countIn]int{
			{Text: "to be or not to be"}:     6, // words is the default
			{Text: "to be\n", Unit: "lines"}: 2,
		} {
			got, err := mcp.Call[countOut](t.Context(), c, "count", in)
			if err != nil || got.Count != want {
				t.Errorf("%+v: got %+v, %v; want %d", in, got, err, want)
			}
		}
	})
}

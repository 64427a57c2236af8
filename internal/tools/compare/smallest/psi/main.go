// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command psi is the smallest server over stdio with psi.
package main

import (
	"context"
	"log"

	"github.com/go-psi/psi/internal/tools/compare/work"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

func main() {
	mux := mcp.NewMux("psi", "v1", nil)
	mux.Tool("add", mcp.ToolFunc(work.Add, nil))
	if err := mcpstdio.Serve(context.Background(), mux, nil); err != nil {
		log.Fatal(err)
	}
}

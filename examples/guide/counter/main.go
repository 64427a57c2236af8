// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command counter is the first server of the guide.
package main

import (
	"context"
	"log"
	"strings"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

// countIn is what the model fills in. The tags tell it how.
type countIn struct {
	Text string `json:"text" jsonschema:"description=the text to count"`
	Unit string `json:"unit,omitzero" jsonschema:"enum=words,enum=lines,default=words"`
}

// countOut is what the model gets.
type countOut struct {
	Count int `json:"count"`
}

func count(_ context.Context, in countIn) (countOut, error) {
	if in.Unit == "lines" {
		return countOut{len(strings.Split(in.Text, "\n"))}, nil
	}
	return countOut{len(strings.Fields(in.Text))}, nil
}

func newMux() *mcp.Mux {
	mux := mcp.NewMux("counter", "v1.0.0", nil)
	mux.Tool("count", mcp.ToolFunc(count, &mcp.Tool{Description: "Count the words or the lines of a text."}))
	return mux
}

func main() {
	if err := mcpstdio.Serve(context.Background(), newMux(), nil); err != nil {
		log.Fatal(err)
	}
}

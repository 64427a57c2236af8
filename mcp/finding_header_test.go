// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// The annotations of a schema are found in one pass, however deep they are: it took
// the time of one pass for each level. What is counted is the memory, which each
// pass took anew.
func TestFindingS35DeepAnnotations(t *testing.T) {
	const levels = 50
	filler := strings.Repeat("x", 100_000)
	deep := strings.Repeat(`{"type":"object","properties":{"p":`, levels) +
		`{"type":"string","x-mcp-header":"Region","description":"` + filler + `"}` + strings.Repeat(`}}`, levels)
	c := connect(t, withLists(welcoming(), &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(deep)}}}), nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res, err := c.ListTools(t.Context(), nil)
	runtime.ReadMemStats(&after)
	if err != nil || len(res.Tools) != 1 {
		t.Fatalf("listed %+v, %v", res, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 2_000_000 {
		t.Errorf("a list of %d bytes takes %d bytes to read", len(deep), got)
	}
}

// Neither does their number matter: each was compared with all others.
func TestFindingS35ManyAnnotations(t *testing.T) {
	const n = 20_000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"p%d":{"type":"string","x-mcp-header":"H%d"},`, i, i)
	}
	list := func(last string) int {
		schema := `{"type":"object","properties":{` + b.String() + `"last":{"type":"string","x-mcp-header":"` + last + `"}}}`
		c := connect(t, withLists(welcoming(), &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(schema)}}}), nil)
		res, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(res.Tools)
	}
	if list("Last") != 1 {
		t.Error("a tool whose annotations are all different was dropped")
	}
	if list("h7") != 0 {
		t.Error("a tool with an annotation that stands twice was kept")
	}
}

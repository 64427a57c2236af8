// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug_test

import (
	"context"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// The page of a deeply nested text does not put each element on its own line: the indented
// text would be thousands of times as long.
func TestDeeplyNestedText(t *testing.T) {
	const depth = 4000
	deep := strings.Repeat("[", depth) + strings.Repeat("1,", 4*depth) + "1" + strings.Repeat("]", depth)
	mux := newMux(t)
	mux.Tool("deep", mcp.ToolFunc(func(context.Context, empty) (string, error) { return deep, nil }, nil))
	s := serve(t, mux, nil)
	r := s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"deep"}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.page("?view=run&id=" + r.ID)
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > 16<<20 {
		t.Errorf("the page of a text of %d bytes takes %d MiB", len(deep), made>>20)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/skills"
)

// paged returns a server whose list of skills has n pages with cursors of a megabyte, each of
// which has one skill. After the last page it repeats a cursor.
func paged(n int) *mcp.Mux {
	mux := mcp.NewMux("paged", "v1", &mcp.MuxOptions{Capabilities: &mcp.ServerCapabilities{
		Extensions: mcp.Extensions{skills.Extension: json.RawMessage("{}")},
	}})
	mux.Handle(skills.MethodList, mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var p mcp.ListParams
		if err := req.Decode(&p); err != nil {
			return nil, err
		}
		page := 0
		if p.Cursor != nil {
			page, _ = strconv.Atoi(strings.TrimLeft(*p.Cursor, "."))
		}
		next := strings.Repeat(".", 1<<20) + strconv.Itoa(min(page+1, n))
		return &skills.ListResult{Page: mcp.Page{NextCursor: &next}, Skills: []*skills.Skill{{URI: "skill://s/SKILL.md"}}}, nil
	}))
	return mux
}

// Reading a list keeps little of the cursors of its pages, and still notices one that is
// repeated.
func TestFindingX7CursorsAreNotKept(t *testing.T) {
	c := mcptest.Connect(t, paged(40))
	var before, after runtime.MemStats
	n := 0
	for _, err := range skills.List(t.Context(), c) {
		if err != nil {
			if !errors.Is(err, mcp.ErrRepeatedCursor) || n != 41 {
				t.Errorf("after %d pages: %v", n, err)
			}
			break
		}
		if n++; n == 1 || n == 40 {
			runtime.GC()
			runtime.ReadMemStats(&after)
			if n == 1 {
				before = after
			}
		}
	}
	if kept := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; kept > 20 {
		t.Errorf("40 cursors of 1 MiB: %d MiB are kept", kept)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// If ParseMessage accepts data, it is JSON and equivalent to the returned message.
// Otherwise its error can be sent.
func FuzzParseMessage(f *testing.F) {
	for _, era := range eras {
		f.Add([]byte(era.request(`"x"`, "tools/call", `"name":"a","arguments":{"b":[1,2]}`)))
		for _, m := range era.open {
			f.Add([]byte(m))
		}
	}
	for i, s := range slices.Concat(coreSamples, legacySamples) {
		f.Add([]byte(s.message(i, metaModern)))
		f.Add([]byte(s.message(-i, metaLegacy)))
	}
	for _, s := range hostileScripts() {
		for line := range strings.SplitSeq(s.text, "\n") {
			f.Add([]byte(line)) // from servers
		}
	}
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`,
		`{"jsonrpc":"2.0","method":"m"}`, `{}`, `[]`, `{"id":1e9}`, `{"jsonrpc":"2.0","id":1.0,"method":"m","params":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := transport.ParseMessage(bytes.Clone(data))
		var req *mcp.Request
		if err == nil && m.Method != "" {
			req, err = core.NewRequest(&m)
		}
		if err != nil {
			if response := core.AppendError(nil, m.ID, err); !json.Valid(response) || mcp.CodeOf(err) == mcp.CodeInternalError {
				t.Errorf("refused with %s", response)
			}
			return
		}
		if !json.Valid(data) || (m.Method == "") == (!m.IsResponse()) {
			t.Fatalf("took %q as %+v", data, m)
		}
		if m.Method == "" {
			return
		}
		if req.Method != m.Method || req.ID != m.ID {
			t.Errorf("took %q as %+v", data, req)
		}
		if p := req.Params(); p != nil && (!json.Valid(p) || p[0] != '{') {
			t.Errorf("params %q", p)
		}
		again, err := req.WithParams(req.Params())
		if err != nil || again.Name() != req.Name() || !bytes.Equal(again.Arguments(), req.Arguments()) {
			t.Errorf("the params of %q read otherwise alone: %v", data, err)
		}
	})
}

// A forged cursor is rejected or continues within the list.
func FuzzCursor(f *testing.F) {
	opts := quiet()
	opts.PageSize = 2
	mux := mcp.NewMux("m", "v1", opts)
	inner := mcp.NewMux("inner", "v1", opts)
	for _, name := range []string{"a", "b", "c"} {
		mux.Tool(name, says(""))
		inner.Tool(name, says(""))
	}
	mux.Mount("in_", inner)
	for cursor := new(string); cursor != nil; {
		p := &mcp.ListParams{Cursor: cursor}
		if *cursor == "" {
			p.Cursor = nil
		}
		res, err := mux.ServeMCP(f.Context(), mcptest.NewRequest(mcp.MethodListTools, p))
		if err != nil {
			f.Fatal(err)
		}
		if cursor = res.(*mcp.ListToolsResult).NextCursor; cursor != nil {
			f.Add(*cursor)
		}
	}
	f.Add("")
	f.Add("bm90")
	f.Fuzz(func(t *testing.T, cursor string) {
		if _, err := json.Marshal(cursor); err != nil {
			t.Skip()
		}
		raw, _ := json.Marshal(&mcp.ListParams{Cursor: &cursor})
		req, err := mcp.NewRequest(mcp.MethodListTools, json.RawMessage(raw))
		if err != nil {
			t.Skip() // invalid UTF-8
		}
		for range 10 {
			res, err := mux.ServeMCP(t.Context(), req)
			if err != nil {
				wantCode(t, err, mcp.CodeInvalidParams)
				return
			}
			next := res.(*mcp.ListToolsResult).NextCursor
			if next == nil {
				return
			}
			if req, err = mcp.NewRequest(mcp.MethodListTools, &mcp.ListParams{Cursor: next}); err != nil {
				t.Fatal(err)
			}
		}
		t.Errorf("the list from %q on has no end", cursor)
	})
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// A result that is decoded in the quick way for those of the usual shape is what it
// is when one more member makes it unusual.
func FuzzToolResult(f *testing.F) {
	for _, result := range []string{
		toolDone, asked, `{}`, `{"content":[]}`, `{"content":[{"text":"a\"\u00e9\n","type":"text"}],"isError":true}`,
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"text"}],"_meta":{"a":{"b":1}}}`,
		`{"content":null,"isError":null,"structuredContent":null,"_meta":null,"resultType":null}`,
		`{"resultType":"complet\u0065","content":{"type":"text","text":"single"},"structuredContent":[1]}`,
	} {
		f.Add([]byte(result), uint64(0))
		f.Add([]byte(result), uint64(len(result)))
	}
	f.Fuzz(func(t *testing.T, result []byte, seed uint64) {
		usual := string(mutated(result, seed))
		open, ok := strings.CutSuffix(usual, "}")
		if !ok || strings.Contains(usual, `"$"`) || strings.Contains(usual, `"zz"`) || !json.Valid([]byte(usual)) {
			t.Skip()
		}
		if strings.Trim(open, " \t\r\n") != "{" {
			open += ","
		}
		lines := [][]byte{[]byte(reply(usual)), []byte(reply(open + `"zz":0}`))}
		h := newHostile(t, mcp.LatestVersion, &script{lines: lines})
		opts := &mcp.ClientOptions{Logger: quiet().Logger, ManualInput: true}
		c, err := mcp.NewClient("c", "v1", opts).ConnectWith(t.Context(), mcp.StreamTransport(h.connect), mcp.LatestVersion)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		a, errA := c.CallTool(t.Context(), tool("t", ""))
		b, errB := c.CallTool(t.Context(), tool("t", ""))
		switch {
		case (errA == nil) != (errB == nil):
			t.Errorf("%s: %v, and with one more member %v", usual, errA, errB)
		case errA == nil:
			delete(b.Extra, "zz")
			if len(a.Extra) == 0 && len(b.Extra) == 0 {
				a.Extra, b.Extra = nil, nil
			}
			if !reflect.DeepEqual(normal(a), normal(b)) {
				t.Errorf("%s became\n%+v, and with one more member\n%+v", usual, a, b)
			}
		}
	})
}

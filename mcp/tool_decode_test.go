// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// A result of the usual shape is decoded in a quicker way than others. One more member
// makes it unusual, and must not make a difference to the rest.
func TestToolResultsDecodeAlike(t *testing.T) {
	discovered := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`
	answer := ""
	c := connectTo(t, fakeServer(func(method, id string) (string, bool) {
		if method == mcp.MethodDiscover {
			return `{"jsonrpc":"2.0","id":` + id + `,"result":` + discovered + `}`, true
		}
		return `{"jsonrpc":"2.0","id":` + id + `,"result":` + answer + `}`, true
	}), nil)
	call := func(result string) (*mcp.CallToolResult, error) {
		answer = result
		return c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"})
	}
	for _, result := range []string{
		`{"content":[]}`,
		`{"content":[{"type":"text","text":"a"}]}`,
		`{"content":[{"text":"a\"\u00e9\n","type":"text"}],"isError":true}`,
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"text","text":"c"}]}`,
		`{"content":[{"type":"text","text":"a","annotations":{"priority":1}}]}`,
		`{"content":[{"type":"text","text":"a","x":9007199254740993}]}`,
		`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"b"}]}`,
		`{"content":[{"type":"text"}]}`,
		`{"content":[{"type":"text","text":7}]}`,
		`{"content":[{"text":"a"}]}`,
		`{"content":[null]}`,
		`{"content":[7]}`,
		`{"content":null}`,
		`{"content":{"type":"text","text":"single"}}`,
		`{"content":7}`,
		`{"isError":false,"content":[],"structuredContent":{"n":9007199254740993}}`,
		`{"content":[],"structuredContent":null}`,
		`{"content":[],"structuredContent":[1]}`,
		`{"content":[],"isError":"yes"}`,
		`{"content":[],"isError":null}`,
		`{"content":[],"_meta":{"a":{"b":1}},"resultType":"complete"}`,
		`{"content":[],"_meta":7}`,
		`{"content":[],"_meta":null}`,
		`{"content":[],"resultType":"complet\u0065"}`,
		`{"content":[],"resultType":7}`,
		`{"content":[],"resultType":""}`,
		`{}`,
	} {
		usual, err := call(result)
		more := strings.TrimSuffix(result, "}") + `,"zz":0}`
		unusual, unusualErr := call(strings.Replace(more, "{,", "{", 1))
		if (err == nil) != (unusualErr == nil) {
			t.Errorf("%s: %v, and with one more member %v", result, err, unusualErr)
			continue
		}
		if err != nil {
			continue
		}
		if len(unusual.Extra) != 1 {
			t.Errorf("%s: more members: %v", result, unusual.Extra)
		}
		unusual.Extra = usual.Extra
		if !reflect.DeepEqual(normal(usual), normal(unusual)) {
			t.Errorf("%s became\n%+v, and with one more member\n%+v", result, usual, unusual)
		}
	}
}

// normal makes no difference between maps and lists that are empty and those that are
// not there.
func normal(r *mcp.CallToolResult) *mcp.CallToolResult {
	n := *r
	if len(n.Content) == 0 {
		n.Content = nil
	}
	for _, c := range n.Content {
		if text, ok := c.(*mcp.TextContent); ok && len(text.Extra) == 0 {
			text.Extra = nil
		}
	}
	if len(n.Meta) == 0 {
		n.Meta = nil
	}
	if len(n.Extra) == 0 {
		n.Extra = nil
	}
	return &n
}

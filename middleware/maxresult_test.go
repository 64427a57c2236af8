// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// results returns results of all kinds, some of which are much longer when encoded.
func results() map[string]mcp.Result {
	long, bytes := strings.Repeat("x", 3000), make([]byte, 3000)
	controls := strings.Repeat("\x01\"<\u2028", 500)
	withMeta := mcp.TextResult("x")
	withMeta.Meta.Set("long", long)
	noted := mcp.Text("x")
	noted.Meta.Set("long", long)
	tool := func(c ...mcp.Content) mcp.Result { return &mcp.CallToolResult{Content: c} }
	return map[string]mcp.Result{
		"empty":      &mcp.EmptyResult{},
		"text":       mcp.TextResult(long),
		"controls":   mcp.TextResult(controls),
		"no UTF-8":   mcp.TextResult(strings.Repeat("\xff", 500)),
		"structured": &mcp.CallToolResult{StructuredContent: []byte(`{"a":"` + long + `"}`), Content: mcp.Contents{}},
		"image":      tool(&mcp.ImageContent{Data: bytes, MIMEType: "image/png"}),
		"sound":      tool(&mcp.AudioContent{Data: bytes, MIMEType: "audio/wav"}),
		"noted":      tool(noted),
		"meta":       withMeta,
		"embedded":   tool(&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "a:a", Text: controls}}),
		"unknown":    tool(&mcp.UnknownContent{Type: "x", Raw: []byte(`{"type":"x","a":"` + long + `"}`)}),
		"link":       tool(&mcp.ResourceLink{Resource: mcp.Resource{URI: "a:a", Name: long}}),
		"nothing":    tool(nil),
		"resource":   &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "a:a", Blob: bytes}, {URI: "a:b", Text: long}}},
		"prompt":     &mcp.GetPromptResult{Description: long, Messages: []*mcp.PromptMessage{mcp.UserMessage(mcp.Text(controls))}},
		"list":       &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", Description: long, InputSchema: []byte(`{"type":"object"}`)}}},
	}
}

// A result is rejected exactly if it is too long in the encoding of the revision.
func TestMaxResultIsExact(t *testing.T) {
	for name, res := range results() {
		for _, version := range append(mcp.ModernVersions(), mcp.LegacyVersions()...) {
			req := (&mcptest.Client{}).NewRequest(mcp.MethodCallTool, map[string]any{"_meta": map[string]any{mcp.MetaProtocolVersion: version}})
			truth := len(mcp.AppendResponse(nil, req, res, nil))
			for _, most := range []int{1, truth / 2, truth - 1, truth, truth + 1, 2 * truth, 10 * truth, 1 << 20} {
				got, err := middleware.MaxResult(most)(answering(res, nil)).ServeMCP(t.Context(), req)
				if passed := err == nil && got == res; passed != (truth <= most) {
					t.Errorf("%s of %d bytes in %s: with %d allowed got %v, %v", name, truth, version, most, got, err)
				}
			}
		}
	}
	mustPanic(t, "MaxResult(0)", func() { middleware.MaxResult(0) })
}

func TestMaxResultInEveryEra(t *testing.T) {
	large := strings.Repeat("large ", 10_000)
	mux := serving(says(large), middleware.MaxResult(5000))
	mux.Tool("fails", answering(nil, mcp.Errorf(7, "no")))
	mux.Resource("r:r", mcp.ResourceFunc(func(context.Context, none) (string, error) { return large, nil }, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"})
		if err != nil || !res.IsError || !strings.Contains(textOf(t, res), "5000 bytes") {
			t.Errorf("a tool: got %v, %v", res, err)
		}
		_, err = c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "r:r"})
		wantCode(t, err, mcp.CodeTooLarge)
		_, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "fails"})
		wantCode(t, err, 7)
	})
}

func ExampleMaxResult() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Use(middleware.MaxResult(1000))
	mux.Tool("dump", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return strings.Repeat("0", 1_000_000), nil }, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	_, err = mcp.Call[string](ctx, conn, "dump", struct{}{})
	fmt.Println(err)
	// Output: the tool "dump" failed: the result is larger than the 1000 bytes that are allowed; ask for less of it
}

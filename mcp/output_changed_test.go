// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// A server that is replaced by one whose tool returns more goes on being of use to clients that
// have listed its tools before. What still does not fit is an error, and is looked up once.
func TestOutputSchemaChanges(t *testing.T) {
	schema, content, lists := `{"type":"object","properties":{"n":{}},"additionalProperties":false}`, `{"n":1}`, 0
	h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodListTools:
			lists++
			return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(schema)}}}, nil
		case mcp.MethodCallTool:
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(content)}, nil
		}
		return welcoming().ServeMCP(ctx, req)
	})
	for _, version := range bothEras {
		lists = 0
		c := connect(t, h, &mcp.ClientOptions{Version: version})
		if _, err := c.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for i, step := range []struct {
			schema, content string
			fine            bool
			lists           int
		}{
			{schema, `{"n":1}`, true, 1},
			{`{"type":"object","properties":{"n":{},"m":{}},"additionalProperties":false}`, `{"n":1,"m":2}`, true, 2},
			{`{"type":"object","properties":{"n":{},"m":{}},"additionalProperties":false}`, `{"o":3}`, false, 3},
			{`{"type":"object","properties":{"n":{},"m":{}},"additionalProperties":false}`, `{"o":3}`, false, 3},
		} {
			schema, content = step.schema, step.content
			_, err := c.CallTool(t.Context(), tool("t", ""))
			if _, bad := errors.AsType[*mcp.OutputError](err); bad == step.fine || step.fine && err != nil || lists != step.lists {
				t.Errorf("%s, step %d: %v after %d lists", version, i, err, lists)
			}
		}
		schema = `{"type":"object","properties":{"n":{}},"additionalProperties":false}`
	}
}

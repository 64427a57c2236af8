// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

func greet(_ context.Context, in struct {
	Name string `json:"name"`
}) (string, error) {
	return "Hello, " + in.Name + "!", nil
}

// The body runs eleven times: in both eras and on every path.
func ExampleRun() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))

	inTest(func(t *testing.T) { // func TestGreet(t *testing.T)
		mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
			got, err := mcp.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"})
			if err != nil || got != "Hello, Ada!" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	})
}

func ExampleNewRequest() {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))

	req := mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "greet", Arguments: []byte(`{"name":"Ada"}`)})
	res, err := mux.ServeMCP(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.(*mcp.CallToolResult).Content[0].(*mcp.TextContent).Text)
	// Output: Hello, Ada!
}

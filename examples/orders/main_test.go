// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/openapi"
)

const key = "secret"

func openTest(t *testing.T) api {
	t.Helper()
	orders, err := open(t.Context(), filepath.Join(t.TempDir(), "orders.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = orders.db.Close() })
	return orders
}

func connect(t *testing.T, opts *openapi.Options) *mcp.Conn {
	t.Helper()
	mux, err := newMux(key, opts)
	if err != nil {
		t.Fatal(err)
	}
	return mcptest.Connect(t, mux)
}

// calls are made in this order, on an empty database.
var calls = []struct{ tool, args, want string }{
	{"createOrder", `{"item":"lamp","quantity":2}`, `{"id":1,"item":"lamp","quantity":2,"status":"open"}`},
	{"createOrder", `{"item":"lamp","quantity":0}`, `/quantity: expected number of at least 1`},
	{"createOrder", `{"item":"lamp","quantity":2,"id":7}`, `unknown property "id"`},
	{"createOrder", `{"item":"chair","quantity":1}`, `"id":2`},
	{"attachReceipt", `{"id":1,"receipt":{"name":"r.txt","text":"paid in cash"}}`, `HTTP 204 No Content`},
	{"attachReceipt", `{"id":1,"receipt":{"name":"r.txt","text":"again"}}`, `"detail":"there is no open order`},
	{"getOrder", `{"id":1}`, `"status":"paid"`},
	{"getOrder", `{"id":9}`, `HTTP 404 Not Found
{"detail":"there is no such order; list the orders`},
	{"listOrders", `{"status":["paid","open"],"limit":1}`, `{"orders":[{"id":2,"item":"chair","quantity":1,"status":"open"}]}`},
	{"listOrders", `{"status":["paid"]}`, `{"orders":[{"id":1,"item":"lamp","quantity":2,"status":"paid"}]}`},
	{"listOrders", `{"status":["shipped"]}`, `got string "shipped"; allowed: "open", "paid"`},
}

// TestSameAnswers makes the same calls in process and behind a socket.
func TestSameAnswers(t *testing.T) {
	server := httptest.NewServer(openTest(t).routes(key))
	defer server.Close()
	local := connect(t, &openapi.Options{Handler: openTest(t).routes(key)})
	remote := connect(t, &openapi.Options{BaseURL: server.URL})
	for _, c := range calls {
		params := &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.args)}
		got, err := local.CallTool(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := got.Content[0].(*mcp.TextContent); text == nil || !strings.Contains(text.Text, c.want) {
			t.Errorf("%s %s: got %+v, want %s", c.tool, c.args, text, c.want)
		}
		other, err := remote.CallTool(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if got, other := encode(t, got), encode(t, other); got != other {
			t.Errorf("%s %s: in process %s, behind a socket %s", c.tool, c.args, got, other)
		}
	}
}

func encode(t *testing.T, res *mcp.CallToolResult) string {
	t.Helper()
	raw, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A model neither sees nor sets the key, and its call fails without it.
func TestKey(t *testing.T) {
	mux, err := newMux("wrong", &openapi.Options{Handler: openTest(t).routes(key)})
	if err != nil {
		t.Fatal(err)
	}
	conn := mcptest.Connect(t, mux)
	res, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "listOrders", Arguments: json.RawMessage(`{}`)})
	if text, _ := res.Content[0].(*mcp.TextContent); err != nil || !res.IsError || !strings.Contains(text.Text, "HTTP 401") {
		t.Errorf("got %+v, %v", text, err)
	}
	for tool, err := range conn.Tools(t.Context(), nil) {
		if err != nil || strings.Contains(strings.ToLower(string(tool.InputSchema)), "key") {
			t.Errorf("got %s, %v", tool.InputSchema, err)
		}
	}
}

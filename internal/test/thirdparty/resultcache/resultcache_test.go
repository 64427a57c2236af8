// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package resultcache_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"

	"example.com/thirdparty/resultcache"
)

type memory struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = value
	return nil
}

type broken struct{}

func (broken) Get(context.Context, string) ([]byte, error) { return nil, errors.New("down") }
func (broken) Set(context.Context, string, []byte) error   { return errors.New("down") }

type squareIn struct {
	N int `json:"n"`
}

// server returns a mux whose tools count their calls in n.
func server(s resultcache.Store, n *int) *mcp.Mux {
	mux := mcp.NewMux("m", "v1.0.0", nil)
	mux.Use(resultcache.New(s, func(tool string) bool { return tool != "roll" }))
	square := func(_ context.Context, in squareIn) (int, error) { *n++; return in.N * in.N, nil }
	mux.Tool("square", mcp.ToolFunc(square, nil))
	mux.Tool("roll", mcp.ToolFunc(square, nil))
	mux.Tool("fails", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { *n++; return "", errors.New("no") }, nil))
	mux.Resource("page://{n}", mcp.ResourceFunc(func(context.Context, squareIn) (string, error) { *n++; return "page", nil }, nil))
	return mux
}

// Over every revision and transport, a repeated call is answered from the store, with the same
// result and a mark.
func TestRepeatedCalls(t *testing.T) {
	mcptest.RunNew(t, func(*testing.T) mcp.Handler { return server(&memory{values: map[string][]byte{}}, new(int)) }, func(t *testing.T, c *mcp.Conn) {
		for i := range 3 {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "square", Arguments: []byte(`{"n":3}`)})
			if err != nil || len(res.Content) != 1 || res.Content[0].(*mcp.TextContent).Text != "9" {
				t.Fatalf("got %+v, %v", res, err)
			}
			var cached bool
			if mcp.ResultMeta(res).Get(resultcache.Key, &cached); cached != (i > 0) {
				t.Errorf("call %d: cached is %t", i, cached)
			}
		}
	})
}

func TestWhatIsKept(t *testing.T) {
	ann, bob := &mcp.Principal{Subject: "ann"}, &mcp.Principal{Subject: "bob"}
	for _, test := range []struct {
		name   string
		store  resultcache.Store
		method string
		params any
		first  *mcp.Principal
		second *mcp.Principal
		want   int // calls of the handler
	}{
		{"a pure tool", &memory{values: map[string][]byte{}}, mcp.MethodCallTool, &mcp.CallToolParams{Name: "square", Arguments: []byte(`{"n":1}`)}, ann, ann, 1},
		{"another caller", &memory{values: map[string][]byte{}}, mcp.MethodCallTool, &mcp.CallToolParams{Name: "square", Arguments: []byte(`{"n":1}`)}, ann, bob, 2},
		{"a tool that is not pure", &memory{values: map[string][]byte{}}, mcp.MethodCallTool, &mcp.CallToolParams{Name: "roll", Arguments: []byte(`{"n":1}`)}, ann, ann, 2},
		{"a tool that fails", &memory{values: map[string][]byte{}}, mcp.MethodCallTool, &mcp.CallToolParams{Name: "fails"}, ann, ann, 2},
		{"a resource", &memory{values: map[string][]byte{}}, mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "page://1"}, ann, ann, 1},
		{"a store that is down", broken{}, mcp.MethodCallTool, &mcp.CallToolParams{Name: "square", Arguments: []byte(`{"n":1}`)}, ann, ann, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := 0
			mux := server(test.store, &n)
			for _, caller := range []*mcp.Principal{test.first, test.second} {
				client := &mcptest.Client{Principal: caller}
				if _, _, err := mcptest.Do(t, mux, client.NewRequest(test.method, test.params)); err != nil {
					t.Fatal(err)
				}
			}
			if n != test.want {
				t.Errorf("the handler was called %d times, want %d", n, test.want)
			}
		})
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// quiet are the options of a mux that says nothing.
func quiet() *mcp.MuxOptions {
	return &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)}
}

// none is the input of tools without arguments.
type none struct{}

// says is a tool that returns a text.
func says(text string) mcp.Handler {
	return mcp.ToolFunc(func(context.Context, none) (string, error) { return text, nil }, nil)
}

// promptSays is a prompt, reads a resource, of a text.
func promptSays(text string) mcp.Handler {
	return mcp.PromptFunc(func(context.Context, none) (string, error) { return text, nil }, nil)
}

func reads(text string) mcp.Handler {
	return mcp.ResourceFunc(func(context.Context, none) (string, error) { return text, nil }, nil)
}

func tool(name, args string) *mcp.CallToolParams {
	p := &mcp.CallToolParams{Name: name}
	if args != "" {
		p.Arguments = json.RawMessage(args)
	}
	return p
}

// textOf is the text of a result's blocks.
func textOf(res *mcp.CallToolResult) string {
	var texts []string
	for _, block := range res.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		} else {
			texts = append(texts, fmt.Sprintf("%T", block))
		}
	}
	return strings.Join(texts, "\n")
}

// mustCall calls a tool over a connection and returns its text.
func mustCall(t *testing.T, c *mcp.Conn, name, args string) string {
	t.Helper()
	res, err := c.CallTool(t.Context(), tool(name, args))
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	return textOf(res)
}

// callTool calls a tool of a handler, without a wire.
func callTool(t *testing.T, h mcp.Handler, name, args string) (*mcp.CallToolResult, error) {
	t.Helper()
	res, _, err := mcptest.Do(t, h, mcptest.NewRequest(mcp.MethodCallTool, tool(name, args)))
	if err != nil {
		return nil, err
	}
	return res.(*mcp.CallToolResult), nil
}

// wantCode checks the code of an error.
func wantCode(t *testing.T, err error, code int) {
	t.Helper()
	if mcp.CodeOf(err) != code {
		t.Errorf("got the error %v, want one with code %d", err, code)
	}
}

// wantPanic checks that fn panics with a text that has all the parts.
func wantPanic(t *testing.T, fn func(), parts ...string) {
	t.Helper()
	defer func() {
		t.Helper()
		v := recover()
		if v == nil {
			t.Error("there was no panic")
			return
		}
		for _, part := range append(parts, "mcp: ") {
			if !strings.Contains(fmt.Sprint(v), part) {
				t.Errorf("the panic %q does not say %q", v, part)
			}
		}
	}()
	fn()
}

// serveRaw sends a request that the client has no method for, or params that it would
// not send.
func serveRaw(t *testing.T, c *mcp.Conn, method string, params any) (mcp.Result, error) {
	t.Helper()
	req, err := mcp.NewRequest(method, params)
	if err != nil {
		t.Fatal(err)
	}
	return c.ServeMCP(t.Context(), req)
}

// listen subscribes and returns a channel of the changes. In the legacy era nothing
// acknowledges a subscription to lists; a server that answers a ping has read what came
// before it, notifications/initialized included.
func listen(t *testing.T, c *mcp.Conn, f mcp.SubscriptionFilter) (*mcp.Subscription, <-chan mcp.Change) {
	t.Helper()
	changes := make(chan mcp.Change, 1000)
	s, err := c.Listen(t.Context(), f, func(change mcp.Change) { changes <- change })
	if err = errors.Join(err, c.Ping(t.Context())); err != nil {
		t.Fatal(err)
	}
	return s, changes
}

// next returns the next change of a kind; others are passed over.
func next(t *testing.T, changes <-chan mcp.Change, method string) mcp.Change {
	t.Helper()
	for {
		select {
		case change := <-changes:
			if change.Method == method {
				return change
			}
		case <-t.Context().Done():
			t.Fatalf("waiting for %s: %v", method, context.Cause(t.Context()))
		}
	}
}

// received returns the URIs of the resources that were reported so far.
func received(changes <-chan mcp.Change) []string {
	var uris []string
	for {
		select {
		case change := <-changes:
			uris = append(uris, change.URI)
		default:
			return uris
		}
	}
}

// uncalled is a handler that the test does not call.
var uncalled = mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.TextResult(""), nil })

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

// quiet returns mux options that discard the log.
func quiet() *mcp.MuxOptions {
	return &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)}
}

// none is the input of tools without arguments.
type none struct{}

// says returns a tool that returns text.
func says(text string) mcp.Handler {
	return mcp.ToolFunc(func(context.Context, none) (string, error) { return text, nil }, nil)
}

// promptSays returns a prompt with the given text, and reads a resource with it.
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

// textOf returns the text of a result's content.
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

// callTool calls a tool of a handler directly, without a transport.
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

// wantPanic checks that fn panics with a text that contains all parts.
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

// serveRaw sends a request that the client has no method for, or with params it would not
// send.
func serveRaw(t *testing.T, c *mcp.Conn, method string, params any) (mcp.Result, error) {
	t.Helper()
	req, err := mcp.NewRequest(method, params)
	if err != nil {
		t.Fatal(err)
	}
	return c.ServeMCP(t.Context(), req)
}

// listen subscribes and returns a channel of the changes. In the legacy era, subscriptions
// to lists are not acknowledged, but a server that answers a ping has read everything
// before it, including notifications/initialized.
func listen(t *testing.T, c *mcp.Conn, f mcp.SubscriptionFilter) (*mcp.Subscription, <-chan mcp.Change) {
	t.Helper()
	changes := make(chan mcp.Change, 1000)
	s, err := c.Listen(t.Context(), f, func(change mcp.Change) { changes <- change })
	if err = errors.Join(err, c.Ping(t.Context())); err != nil {
		t.Fatal(err)
	}
	return s, changes
}

// next returns the next change with the given method and skips others.
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

// received returns the URIs of the resource updates received so far.
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

// uncalled is a handler that is not called.
var uncalled = mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.TextResult(""), nil })

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// request sends a request of any method over a connection.
func request(t *testing.T, c *mcp.Conn, method string, params any) (mcp.Result, error) {
	t.Helper()
	req, err := mcp.NewRequest(method, params)
	if err != nil {
		t.Fatal(err)
	}
	return c.ServeMCP(t.Context(), req)
}

// encoded returns a result as JSON.
func encoded(method string, res mcp.Result) string {
	return string(mcp.AppendResponse(nil, mcptest.NewRequest(method, nil), res, nil))
}

// listen subscribes and returns the channel of changes. In the legacy era, subscriptions to
// lists are not acknowledged, but a server that answers a ping has read all earlier
// messages.
func listen(t *testing.T, c *mcp.Conn, f mcp.SubscriptionFilter) <-chan mcp.Change {
	t.Helper()
	changes := make(chan mcp.Change, 100)
	_, err := c.Listen(t.Context(), f, func(change mcp.Change) { changes <- change })
	if err = errors.Join(err, c.Ping(t.Context())); err != nil {
		t.Fatal(err)
	}
	return changes
}

// none is the input of tools without arguments.
type none struct{}

// discard is a Meter that discards measurements.
type discard struct{}

func (discard) Count(context.Context, string, []middleware.Label, uint64)    {}
func (discard) Gauge(context.Context, string, []middleware.Label, int64)     {}
func (discard) Observe(context.Context, string, []middleware.Label, float64) {}

// quiet returns the options of a mux that logs nothing.
func quiet() *mcp.MuxOptions {
	return &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)}
}

func says(text string) mcp.Handler {
	return mcp.ToolFunc(func(context.Context, none) (string, error) { return text, nil }, nil)
}

// serving returns a server with a tool "t" and middleware around everything.
func serving(h mcp.Handler, mw ...mcp.Middleware) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(mw...)
	mux.Tool("t", h)
	return mux
}

func call(name string) *mcp.Request {
	return mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: name})
}

// as sets the principal of a request and returns the request.
func as(p *mcp.Principal, req *mcp.Request) *mcp.Request {
	req.Principal = p
	return req
}

func wantCode(t *testing.T, err error, code int) {
	t.Helper()
	if mcp.CodeOf(err) != code {
		t.Errorf("got the error %v, want the code %d", err, code)
	}
}

// mustPanic checks that invalid arguments of a constructor cause a panic.
func mustPanic(t *testing.T, what string, fn func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s did not panic", what)
		}
	}()
	fn()
}

func textOf(t *testing.T, res mcp.Result) string {
	t.Helper()
	r, ok := res.(*mcp.CallToolResult)
	if !ok || len(r.Content) != 1 {
		t.Fatalf("got %T", res)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// server is the server side of a client's connection. Its first requests, up to the number
// in fails, return err.
type server struct {
	fails int
	err   error
	res   mcp.Result
	calls int
}

func (s *server) ServeMCP(context.Context, *mcp.Request) (mcp.Result, error) {
	if s.calls++; s.calls <= s.fails {
		return nil, s.err
	}
	return s.res, nil
}

var errLost = errors.New("lost")

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// tellsID returns a tool that returns the ID of its request.
func tellsID() mcp.Handler {
	return mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { return middleware.RequestIDFrom(ctx), nil }, nil)
}

func TestRequestID(t *testing.T) {
	made := &middleware.RequestIDOptions{New: func() string { return "made" }}
	for name, test := range map[string]struct {
		opts   *middleware.RequestIDOptions
		header map[string][]string
		want   string
	}{
		"none":           {made, nil, "made"},
		"of the header":  {made, map[string][]string{"X-Request-Id": {"abc-1"}}, "abc-1"},
		"another header": {&middleware.RequestIDOptions{Header: "X-Trace", New: made.New}, map[string][]string{"X-Request-Id": {"a"}, "X-Trace": {"b"}}, "b"},
		"no header":      {&middleware.RequestIDOptions{Header: "-", New: made.New}, map[string][]string{"X-Request-Id": {"a"}}, "made"},
		"empty":          {made, map[string][]string{"X-Request-Id": {""}}, "made"},
		"two":            {made, map[string][]string{"X-Request-Id": {"a", "b"}}, "made"},
		"a line":         {made, map[string][]string{"X-Request-Id": {"a\nb"}}, "made"},
		"no ASCII":       {made, map[string][]string{"X-Request-Id": {"ä"}}, "made"},
		"long":           {made, map[string][]string{"X-Request-Id": {strings.Repeat("a", 129)}}, "made"},
		"not too long":   {made, map[string][]string{"X-Request-Id": {strings.Repeat("a", 128)}}, strings.Repeat("a", 128)},
	} {
		t.Run(name, func(t *testing.T) {
			req := call("t")
			req.Header = test.header
			again := middleware.RequestID(&middleware.RequestIDOptions{New: func() string { return "second" }})
			res, _, err := mcptest.Do(t, serving(tellsID(), middleware.RequestID(test.opts), again), req)
			if err != nil || textOf(t, res) != test.want {
				t.Errorf("got %v, %v, want %s", res, err, test.want)
			}
		})
	}
	if id := middleware.RequestIDFrom(t.Context()); id != "" {
		t.Errorf("without the middleware: got %q", id)
	}
}

// T46, T47: the ID is taken from the header of the request, in every era. Requests sent by
// its handler do not carry it.
func TestRequestIDInEveryEra(t *testing.T) {
	upstream := mcptest.Dial(t, mcp.InProcess(serving(tellsID(), middleware.RequestID(nil))), nil)
	mux := serving(tellsID(), middleware.RequestID(nil))
	mux.Tool("passes", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		return mcp.Call[string](ctx, upstream, "t", none{})
	}, nil))
	client := &mcptest.Client{Header: http.Header{"X-Request-Id": {"mine"}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		isHTTP := strings.Contains(t.Name(), "http") || strings.Contains(t.Name(), "/sse")
		ids := map[string]bool{"": true}
		for _, name := range []string{"t", "t", "passes"} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			id := textOf(t, res)
			if mine := isHTTP && name == "t"; (id == "mine") != mine || !mine && (ids[id] || len(id) != 26) {
				t.Errorf("%s has the id %q", name, id)
			}
			ids[id] = true
		}
	})
}

func ExampleRequestID() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "duration" {
				return slog.Attr{}
			}
			return a
		},
	}))
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Use(middleware.RequestID(nil), middleware.Logger(logger))
	mux.Tool("hello", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return "this was " + middleware.RequestIDFrom(ctx), nil
	}, nil))

	req, err := mcp.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "hello"})
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header = http.Header{"X-Request-Id": {"a1b2"}} // as it comes over HTTP
	_, _ = mux.ServeMCP(context.Background(), req)
	// Output: level=INFO msg="mcp: request" method=tools/call name=hello request=a1b2 outcome=ok
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// trace lists the middleware that one request has passed through.
type trace struct {
	method string
	passed []string
}

type traceKey struct{}

func note(ctx context.Context, what string) {
	if tr, ok := ctx.Value(traceKey{}).(*trace); ok {
		tr.passed = append(tr.passed, what)
	}
}

// tracer notes its name before and after a request. The first tracer of a request publishes
// the trace.
func tracer(name string, traces chan<- *trace) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if ctx.Value(traceKey{}) == nil {
				tr := &trace{method: req.Method}
				ctx = context.WithValue(ctx, traceKey{}, tr)
				defer func() { traces <- tr }()
			}
			note(ctx, name)
			defer note(ctx, name)
			return next.ServeMCP(ctx, req)
		})
	}
}

// ordered returns a server with items of all kinds, which also mounts a server with the
// same items.
func ordered(traces chan<- *trace) *mcp.Mux {
	type in struct {
		N int `json:"n,omitempty"`
	}
	fill := func(mux *mcp.Mux) {
		mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ in) (string, error) {
			note(ctx, "handler")
			return "", nil
		}, nil))
		mux.Prompt("p", mcp.PromptFunc(func(ctx context.Context, _ struct {
			X string `json:"x,omitempty"`
		}) (string, error) {
			note(ctx, "handler")
			return "", nil
		}, &mcp.Prompt{Completers: map[string]mcp.Completer{"x": func(ctx context.Context, _ *mcp.CompleteParams) ([]string, error) {
			note(ctx, "handler")
			return nil, nil
		}}}))
		read := mcp.ResourceFunc(func(ctx context.Context, _ none) (string, error) {
			note(ctx, "handler")
			return "", nil
		}, nil)
		mux.Resource("r:r", read)
		mux.Resource("l:{x}", mcp.ResourceFunc(func(ctx context.Context, _ map[string]string) (string, error) {
			note(ctx, "handler")
			return "", nil
		}, nil))
	}
	child := mcp.NewMux("child", "v1", quiet())
	fill(child)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(tracer("a", traces))
	fill(mux)
	custom := mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		note(ctx, "handler")
		return &mcp.EmptyResult{}, nil
	})
	mux.Handle("vendor/m", custom)
	mux.Handle("notifications/vendor", custom)
	mux.Mount("in_", child)
	mux.Use(tracer("b", traces))
	return mux
}

// of waits for the next trace of a method. It skips requests that sessions send on their
// own.
func of(t *testing.T, traces <-chan *trace, method string) string {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case tr := <-traces:
			if tr.method == method {
				return strings.Join(tr.passed, " ")
			}
		case <-deadline:
			t.Fatalf("%s passed nothing", method)
		}
	}
}

// again reports whether there is another trace of a method.
func again(traces <-chan *trace, method string) bool {
	for {
		select {
		case tr := <-traces:
			if tr.method == method {
				return true
			}
		default:
			return false
		}
	}
}

// T44: middleware runs around every method, in order and once, in every era and on every
// transport, including mounted, rejected and unknown items.
func TestOrder(t *testing.T) {
	traces := make(chan *trace, 1000)
	mux := ordered(traces)
	const served, answered = "a b handler b a", "a b b a"
	tool := func(name, args string) any {
		return &mcp.CallToolParams{Name: name, Arguments: []byte(args)}
	}
	completion := func(name string) any {
		return &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: name}, Argument: mcp.CompleteArgument{Name: "x"}}
	}
	tests := []struct {
		what, method string
		params       any
		want         string
	}{
		{"tool", mcp.MethodCallTool, tool("t", "{}"), served},
		{"mounted tool", mcp.MethodCallTool, tool("in_t", "{}"), served},
		{"refused arguments", mcp.MethodCallTool, tool("t", `{"n":"x"}`), answered},
		{"refused arguments of a mounted tool", mcp.MethodCallTool, tool("in_t", `{"n":"x"}`), answered},
		{"unknown tool", mcp.MethodCallTool, tool("x", "{}"), answered},
		{"unknown mounted tool", mcp.MethodCallTool, tool("in_x", "{}"), answered},
		{"no name", mcp.MethodCallTool, nil, answered},
		{"prompt", mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "p"}, served},
		{"mounted prompt", mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "in_p"}, served},
		{"unknown prompt", mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "x"}, answered},
		{"resource", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "r:r"}, served},
		{"template", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "l:1"}, served},
		{"mounted resource", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "mount:in_:r:r"}, served},
		{"unknown resource", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "x:x"}, answered},
		{"completion", mcp.MethodComplete, completion("p"), served},
		{"mounted completion", mcp.MethodComplete, completion("in_p"), served},
		{"unknown completion", mcp.MethodComplete, completion("x"), answered},
		{"tools", mcp.MethodListTools, nil, answered},
		{"prompts", mcp.MethodListPrompts, nil, answered},
		{"resources", mcp.MethodListResources, nil, answered},
		{"templates", mcp.MethodListResourceTemplates, nil, answered},
		{"a cursor that is refused", mcp.MethodListTools, map[string]any{"cursor": "x"}, answered},
		{"custom", "vendor/m", nil, served},
		{"unknown method", "vendor/x", nil, answered},
	}
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for _, test := range tests {
			_, _ = request(t, c, test.method, test.params)
			if got := of(t, traces, test.method); got != test.want || again(traces, test.method) {
				t.Errorf("%s passed %q, want %q, and nothing more", test.what, got, test.want)
			}
		}
		for method, want := range map[string]string{"notifications/vendor": served, "notifications/unknown": answered} {
			if err := c.Notify(t.Context(), method, nil); err != nil {
				t.Error(err)
			}
			if got := of(t, traces, method); got != want {
				t.Errorf("%s passed %q, want %q", method, got, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {}); err != nil {
			t.Error(err)
		}
		cancel()
		c.Close() // also ends the stream of a legacy session
		if got := of(t, traces, mcp.MethodListen); got != answered {
			t.Errorf("a subscription passed %q, want %q", got, answered)
		}
	})
}

// Middleware also runs around the first request of a connection: discovery or, in the
// legacy era, the discovery made by initialize.
func TestOrderOfDiscovery(t *testing.T) {
	traces := make(chan *trace, 1000)
	mux := ordered(traces)
	for _, version := range append(mcp.ModernVersions(), mcp.LegacyVersions()...) {
		c := (&mcptest.Client{Options: mcp.ClientOptions{Version: version}}).Connect(t, mux)
		if got := of(t, traces, mcp.MethodDiscover); got != "a b b a" || again(traces, mcp.MethodDiscover) {
			t.Errorf("%s: discovery passed %q, and nothing more", version, got)
		}
		c.Close()
	}
}

// Requests of a client pass through its middleware in the same order.
func TestOrderOfClient(t *testing.T) {
	traces := make(chan *trace, 100)
	mcptest.Run(t, ordered(make(chan *trace, 1000)), func(t *testing.T, c *mcp.Conn) {
		c.Use(tracer("a", traces))
		c.Use(tracer("b", traces))
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"}); err != nil {
			t.Error(err)
		}
		if got := of(t, traces, mcp.MethodCallTool); got != "a b b a" || again(traces, mcp.MethodCallTool) {
			t.Errorf("a call passed %q", got)
		}
		if _, err := c.ListTools(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if got := of(t, traces, mcp.MethodListTools); got != "a b b a" || again(traces, mcp.MethodListTools) {
			t.Errorf("a list passed %q", got)
		}
	})
}

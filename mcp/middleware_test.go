// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// journal notes who was passed in which order.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) note(entry string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
}

// take returns what was noted, and forgets it.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := j.entries
	j.entries = nil
	return entries
}

// middleware notes its name on the way in, and in upper case on the way out. Of
// what a session of the legacy era listens to meanwhile it takes no notice.
func (j *journal) middleware(name string) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodListen {
				j.note(name)
				defer j.note(strings.ToUpper(name))
			}
			return next.ServeMCP(ctx, req)
		})
	}
}

func TestChain(t *testing.T) {
	var j journal
	h := mcp.Chain(says("hi"), j.middleware("a"), j.middleware("b"), j.middleware("c"))
	if _, _, err := mcptest.Do(t, h, mcptest.NewRequest(mcp.MethodCallTool, nil)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(j.take(), " "); got != "a b c C B A" {
		t.Errorf("passed %s", got)
	}
}

// T44: middleware is around every method, in order and once.
func TestUseOrder(t *testing.T) {
	var j journal
	child := mcp.NewMux("child", "v1", quiet())
	child.Tool("t", says(""))
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(j.middleware("a"))
	mux.Tool("t", mcp.ToolFunc(func(context.Context, struct {
		N int `json:"n,omitempty"`
	}) (string, error) {
		j.note("tool")
		return "", nil
	}, nil))
	mux.Prompt("p", promptSays(""))
	mux.Resource("a:{x}", reads(""))
	mux.Handle("vendor/x", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return &mcp.EmptyResult{}, nil }))
	mux.Mount("in_", child)
	mux.Use(j.middleware("b")) // what was registered before is wrapped, too
	for _, test := range []struct {
		what, method string
		params       any
		want         string
	}{
		{"tool", mcp.MethodCallTool, tool("t", ""), "a b tool B A"},
		{"refused arguments", mcp.MethodCallTool, tool("t", `{"n":"x"}`), "a b B A"},
		{"unknown tool", mcp.MethodCallTool, tool("x", ""), "a b B A"},
		{"mounted tool", mcp.MethodCallTool, tool("in_t", ""), "a b B A"},
		{"prompt", mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "p"}, "a b B A"},
		{"resource", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "a:1"}, "a b B A"},
		{"list", mcp.MethodListTools, nil, "a b B A"},
		{"prompts", mcp.MethodListPrompts, nil, "a b B A"},
		{"resources", mcp.MethodListResources, nil, "a b B A"},
		{"templates", mcp.MethodListResourceTemplates, nil, "a b B A"},
		{"completion", mcp.MethodComplete, nil, "a b B A"},
		{"discovery", mcp.MethodDiscover, nil, "a b B A"},
		{"custom", "vendor/x", nil, "a b B A"},
		{"unknown method", "vendor/y", nil, "a b B A"},
	} {
		t.Run(test.what, func(t *testing.T) {
			_, _, _ = mcptest.Do(t, mux, mcptest.NewRequest(test.method, test.params))
			if got := strings.Join(j.take(), " "); got != test.want {
				t.Errorf("passed %q, want %q", got, test.want)
			}
		})
	}
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		j.take() // the handshake of the legacy era
		mustCall(t, c, "t", "")
		if got := strings.Join(j.take(), " "); got != "a b tool B A" {
			t.Errorf("passed %q", got)
		}
	})
}

func TestWithAndGroup(t *testing.T) {
	var j journal
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(j.middleware("u"))
	mux.With(j.middleware("w")).With(j.middleware("x")).Tool("with", says(""))
	mux.Group(func(g *mcp.Mux) {
		g.Tool("before", says(""))
		g.Use(j.middleware("g"))
		g.Tool("after", says(""))
		g.Group(func(h *mcp.Mux) {
			h.Use(j.middleware("h"))
			h.Tool("nested", says(""))
		})
	})
	mux.Tool("plain", says(""))
	for name, want := range map[string]string{
		"with": "u w x X W U", "before": "u U", "after": "u g G U", "nested": "u g h H G U", "plain": "u U",
	} {
		if _, err := callTool(t, mux, name, ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(j.take(), " "); got != want {
			t.Errorf("%s passed %q, want %q", name, got, want)
		}
	}
}

// Middleware sees outcomes, never how they came about: a handler that waits for
// an answer has a result, not an error.
func TestMiddlewareSeesOutcomes(t *testing.T) {
	var kinds []string
	mux := mcp.NewMux("m", "v1", quiet())
	watch := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.ServeMCP(ctx, req)
			switch r := res.(type) {
			case *mcp.InputRequired:
				kinds = append(kinds, "asks")
			case *mcp.CallToolResult:
				kinds = append(kinds, map[bool]string{false: "done", true: "failed"}[r.IsError])
			}
			if err != nil {
				kinds = append(kinds, "error")
			}
			return res, err
		})
	}
	mux.Use(watch)
	inline := mux.With(watch)
	inline.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[struct{}](ctx, "k", "?")
		return "", err
	}, nil))
	inline.Tool("fail", mcp.ToolFunc(func(context.Context, none) (string, error) { return "", errors.New("no") }, nil))
	inline.Tool("refuse", mcp.ToolFunc(func(context.Context, none) (string, error) { return "", mcp.Errorf(7, "no") }, nil))
	for _, name := range []string{"ask", "fail", "refuse"} {
		_, _, _ = mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodCallTool, tool(name, "")))
	}
	if want := []string{"asks", "asks", "failed", "failed", "error", "error"}; !slices.Equal(kinds, want) {
		t.Errorf("saw %q, want %q", kinds, want)
	}
}

// A handler is given the request that middleware passes on.
func TestMiddlewareChangesRequest(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return next.ServeMCP(ctx, req)
			}
			changed, err := req.WithParams(tool("other", ""))
			if err != nil {
				return nil, err
			}
			return next.ServeMCP(ctx, changed)
		})
	})
	mux.Tool("other", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		return mcp.RequestFromContext(ctx).Name(), nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "one", ""); got != "other" {
			t.Errorf("served %q", got)
		}
	})
}

// Middleware is made once, and keeps what it has, whatever is registered later.
func TestMiddlewareIsMadeOnce(t *testing.T) {
	made := 0
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(func(next mcp.Handler) mcp.Handler {
		made++
		return next
	})
	for _, name := range []string{"a", "b", "c"} {
		mux.Tool(name, says(name))
		if res, err := callTool(t, mux, name, ""); err != nil || textOf(res) != name {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	if made != 1 {
		t.Errorf("the middleware was made %d times", made)
	}
}

// A view may get middleware while others register through it.
func TestViewsAreConcurrent(t *testing.T) {
	mux := mcp.NewMux("test", "v1", quiet())
	var passed atomic.Int32
	count := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			passed.Add(1)
			return next.ServeMCP(ctx, req)
		})
	}
	view := mux.With()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { view.Use(count) })
		all.Go(func() { view.With(count).Tool(fmt.Sprint("t", i), says("")) })
	}
	all.Wait()
	view.Tool("last", says(""))
	if _, err := callTool(t, mux, "last", ""); err != nil || passed.Load() != 8 {
		t.Errorf("passed %d of 8, %v", passed.Load(), err)
	}
}

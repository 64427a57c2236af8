// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// journal records which middleware was called, in order.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) note(entry string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
}

// take returns and clears the recorded entries.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := j.entries
	j.entries = nil
	return entries
}

// middleware records its name on the way in, and in upper case on the way out. It ignores
// the subscription that a session of the legacy era opens.
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

// T44: middleware wraps every method, in order and once.
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
	mux.Use(j.middleware("b")) // also wraps what was registered before
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

// Middleware sees a question as a result, not as an error.
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

// A handler receives the request that middleware passes on.
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

// Middleware is constructed once and keeps its state, whatever is registered later.
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

// Middleware may be added to a view while other goroutines register through it.
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

// denying is middleware that rejects every request.
func denying(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(403, "denied: %s", req.Method)
	})
}

// A handler wrapped by Chain, even twice, is registered as if the middleware had been passed to
// With: it is listed with its schema and can ask questions, and the middleware also wraps
// completion.
func TestFindingU17WrappedHandlersStayDescribed(t *testing.T) {
	type in struct {
		Style string `json:"style,omitempty" jsonschema:"enum=short,enum=long"`
	}
	passing := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) { return next.ServeMCP(ctx, req) })
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.Chain(mcp.Chain(mcp.ToolFunc(func(ctx context.Context, in in) (string, error) {
		_, err := mcp.Elicit[agreed](ctx, "k", "Sure?")
		return in.Style, err
	}, &mcp.Tool{Title: "Title"}), passing), passing))
	mux.Prompt("p", mcp.Chain(mcp.PromptFunc(func(_ context.Context, in in) (string, error) { return in.Style, nil }, nil), denying))
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(agreed{true}), nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Title != "Title" || !strings.Contains(string(list.Tools[0].InputSchema), `"short"`) {
			t.Errorf("the tools are %+v, %v", list, err)
		}
		if got := mustCall(t, c, "t", `{"style":"long"}`); got != "long" {
			t.Errorf("the tool answers %q", got)
		}
		prompts, err := c.ListPrompts(t.Context(), nil)
		if err != nil || len(prompts.Prompts) != 1 {
			t.Errorf("the prompts are %+v, %v", prompts, err)
		}
		_, err = c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "p"}, Argument: mcp.CompleteArgument{Name: "style"}})
		wantCode(t, err, 403)
	})
}

// agreed is the content of a form.
type agreed struct {
	Yes bool `json:"yes"`
}

// A handler wrapped by a plain function is hidden. The log reports it and suggests a fix.
func TestFindingU17HiddenHandlersAreReported(t *testing.T) {
	var log bytes.Buffer
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	mux.Tool("t", denying(says("")))
	if got := log.String(); !strings.Contains(got, "not listed") || !strings.Contains(got, "middleware_test.go:") || !strings.Contains(got, "Mux.With") {
		t.Errorf("the log has %q", got)
	}
	log.Reset()
	mux.Tool("v", struct{ mcp.Handler }{says("")})
	if got := log.String(); !strings.Contains(got, "not listed") || !strings.Contains(got, "Chain") {
		t.Errorf("of a type that hides a handler the log has %q", got)
	}
	log.Reset()
	mux.With(denying).Tool("u", says(""))
	mux.Tool("hidden", mcp.WithDescription(denying(nil), nil))
	if log.Len() > 0 {
		t.Errorf("of a tool with a description the log has %q", &log)
	}
}

// Chain does not hide a handler wrapped by plain functions.
func TestFindingU17ChainKeepsTheDescription(t *testing.T) {
	var order []string
	noting := func(name string) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				order = append(order, name)
				return next.ServeMCP(ctx, req)
			})
		}
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.Chain(mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[agreed](ctx, "k", "Sure?")
		return "done", err
	}, &mcp.Tool{Title: "Title"}), noting("outer"), noting("inner")))
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(agreed{true}), nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Title != "Title" {
			t.Errorf("the tools are %+v, %v", list, err)
		}
		order = nil
		if got := mustCall(t, c, "t", `{}`); got != "done" || !slices.Equal(order, []string{"outer", "inner", "outer", "inner"}) {
			t.Errorf("the tool answers %q, after %q", got, order)
		}
	})
}

// The error names the capability that a client lacks.
func TestFindingU19MissingCapabilitiesAreNamed(t *testing.T) {
	for want, ask := range map[string]func(ctx context.Context) error{
		"elicitation.form": func(ctx context.Context) error { _, err := mcp.Elicit[agreed](ctx, "k", "?"); return err },
		"elicitation.url":  func(ctx context.Context) error { return mcp.ElicitURL(ctx, "k", "?", "https://a.example") },
		"roots":            func(ctx context.Context) error { _, err := mcp.Roots(ctx, "k"); return err },
		"sampling": func(ctx context.Context) error {
			_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1})
			return err
		},
		"sampling.context": func(ctx context.Context) error {
			_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1, IncludeContext: "thisServer"})
			return err
		},
		"sampling.tools": func(ctx context.Context) error {
			_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1, ToolChoice: &mcp.ToolChoice{Mode: "auto"}})
			return err
		},
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { return "", ask(ctx) }, nil))
		_, err := connect(t, mux, &mcp.ClientOptions{Version: mcp.LatestVersion}).CallTool(t.Context(), tool("t", ""))
		if wantCode(t, err, mcp.CodeMissingCapability); !strings.Contains(err.Error(), "needs: "+want+" (code") {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// If a prompt or resource returns another error with the text of an error from Ask, it is
// logged, as for a tool.
func TestFindingU6TheErrorIsFlattened(t *testing.T) {
	var log bytes.Buffer
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	mux.Prompt("p", mcp.PromptFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[agreed](ctx, "sure", "Sure?")
		return "", errors.New("asking: " + err.Error())
	}, nil))
	client := &mcptest.Client{Options: mcp.ClientOptions{Version: mcp.LatestVersion, Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(agreed{true}), nil
	}}}
	_, _ = client.Connect(t, mux).GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"})
	if got := log.String(); !strings.Contains(got, "name=p") || !strings.Contains(got, "sure") {
		t.Errorf("the log has %q", got)
	}
}

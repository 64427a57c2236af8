// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// lockedBuffer is a writer for loggers.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// panicky is a server all of whose handlers panic, except one.
func panicky(v any) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("fine", says("fine"))
	mux.Tool("t", mcp.ToolFunc(func(context.Context, none) (string, error) { panic(v) }, nil))
	mux.Prompt("p", mcp.PromptFunc(func(context.Context, struct {
		A string `json:"a,omitempty"`
	}) (string, error) {
		panic(v)
	}, &mcp.Prompt{
		Completers: map[string]mcp.Completer{"a": func(context.Context, *mcp.CompleteParams) ([]string, error) { panic(v) }},
	}))
	mux.Resource("r:r", mcp.ResourceFunc(func(context.Context, none) (string, error) { panic(v) }, nil))
	mux.Resource("l:{x}", panickyLister{reads(""), v})
	mux.Handle("vendor/m", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic(v) }))
	mux.Handle("notifications/n", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic(v) }))
	return mux
}

type panickyLister struct {
	mcp.Handler
	v any
}

func (l panickyLister) ListResources(context.Context, string, *string) (*mcp.ListResourcesResult, error) {
	panic(l.v)
}

// T43: a panic fails the request whose handler panicked, and nothing else. The
// peer is not told of it more than that.
func TestPanics(t *testing.T) {
	mcptest.Run(t, panicky("secret"), func(t *testing.T, c *mcp.Conn) {
		for method, params := range map[string]any{
			mcp.MethodCallTool:      tool("t", ""),
			mcp.MethodGetPrompt:     &mcp.GetPromptParams{Name: "p"},
			mcp.MethodReadResource:  &mcp.ReadResourceParams{URI: "r:r"},
			mcp.MethodListResources: nil,
			mcp.MethodComplete: &mcp.CompleteParams{
				Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "p"}, Argument: mcp.CompleteArgument{Name: "a"},
			},
			"vendor/m": nil,
		} {
			_, err := serveRaw(t, c, method, params)
			wantCode(t, err, mcp.CodeInternalError)
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: the peer was told %v", method, err)
			}
		}
		if err := c.Notify(t.Context(), "notifications/n", nil); err != nil {
			t.Error(err)
		}
		if got := mustCall(t, c, "fine", ""); got != "fine" {
			t.Errorf("after that got %q", got)
		}
	})
}

// T43: the stack is logged, once; ErrAbortHandler is not.
func TestPanicIsLogged(t *testing.T) {
	for _, test := range []struct {
		v    any
		want int
	}{{"boom", 1}, {mcp.ErrAbortHandler, 0}} {
		var out lockedBuffer
		logger := slog.New(slog.NewTextHandler(&out, nil))
		mux := panicky(test.v)
		outer := mcp.NewMux("outer", "v1", quiet())
		outer.Mount("in_", mux)
		req := mcptest.NewRequest(mcp.MethodCallTool, tool("in_t", ""))
		_, err := core.Serve(t.Context(), outer, req, nil, logger)
		wantCode(t, err, mcp.CodeInternalError)
		if got := strings.Count(out.String(), "handler panicked"); got != test.want {
			t.Errorf("%v: logged %d times:\n%s", test.v, got, out.String())
		}
		if test.want > 0 && !strings.Contains(out.String(), "panic_test.go") {
			t.Errorf("the stack is not in %s", out.String())
		}
	}
}

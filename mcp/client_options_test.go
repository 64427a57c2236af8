// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A host with several servers and one client can tell its user who asks.
func TestWhoAsks(t *testing.T) {
	client := mcptest.Client{Options: mcp.ClientOptions{Elicit: func(_ context.Context, c *mcp.Conn, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		if c.ServerInfo().Name == "evil" {
			return mcp.DeclineElicit(), nil
		}
		return mcp.AcceptElicit(yes{true})
	}}}
	for name, want := range map[string]string{"bank": "paid", "evil": "declined"} {
		mux := mcp.NewMux(name, "v1", quiet())
		mux.Tool("pay", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			_, err := mcp.Elicit[yes](ctx, "sure", "Pay?")
			if errors.Is(err, mcp.ErrDeclined) {
				return "declined", nil
			}
			return "paid", err
		}, nil))
		client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
			if got := mustCall(t, c, "pay", ""); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		})
	}
}

func TestAcceptElicit(t *testing.T) {
	if res, err := mcp.AcceptElicit(nil); err != nil || res.Action != mcp.ActionAccept || res.Content != nil {
		t.Errorf("nil: %+v, %v", res, err)
	}
	for _, content := range []any{7, "text", []int{1}, make(chan int)} {
		if res, err := mcp.AcceptElicit(content); err == nil {
			t.Errorf("%T: accepted %s", content, res.Content)
		}
	}
}

// Middleware of a client sees everything that its connections send, and the handshake first.
func TestClientMiddleware(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("a", says("a"))
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		var seen []string
		record := func(name string) mcp.Middleware {
			return func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					seen = append(seen, name+" "+req.Method)
					return next.ServeMCP(ctx, req)
				})
			}
		}
		conn := connect(t, mux, &mcp.ClientOptions{Version: version, Middleware: []mcp.Middleware{record("outer"), record("inner")}})
		conn.Use(record("conn"))
		mustCall(t, conn, "a", "")
		want := []string{"outer server/discover", "inner server/discover", "outer tools/call", "inner tools/call", "conn tools/call"}
		seen = slices.DeleteFunc(seen, func(s string) bool { return strings.Contains(s, "ping") })
		if !slices.Equal(seen, want) {
			t.Errorf("%s: saw %q, want %q", version, seen, want)
		}
	}
	refusal := errors.New("not today")
	refuse := func(mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, refusal })
	}
	if _, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Middleware: []mcp.Middleware{refuse}}).Connect(t.Context(), mcp.InProcess(mux)); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	nothing := func(mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, nil })
	}
	if _, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Middleware: []mcp.Middleware{nothing}}).Connect(t.Context(), mcp.InProcess(mux)); err == nil {
		t.Error("connected without a handshake")
	}
}

// An Upstream has the calls of a connection.
func TestUpstreamCalls(t *testing.T) {
	mux := oneOfEach(t)
	up := mcp.NewClient("c", "v1", &mcp.ClientOptions{Logger: quiet().Logger}).Maintain(t.Context(), mcp.InProcess(mux), nil)
	defer up.Close()
	conn := connect(t, mux, nil)
	for name, call := range map[string][2]func() (any, error){
		"tools":     {func() (any, error) { return up.ListTools(t.Context(), nil) }, func() (any, error) { return conn.ListTools(t.Context(), nil) }},
		"prompts":   {func() (any, error) { return up.ListPrompts(t.Context(), nil) }, func() (any, error) { return conn.ListPrompts(t.Context(), nil) }},
		"resources": {func() (any, error) { return up.ListResources(t.Context(), nil) }, func() (any, error) { return conn.ListResources(t.Context(), nil) }},
		"templates": {func() (any, error) { return up.ListResourceTemplates(t.Context(), nil) }, func() (any, error) { return conn.ListResourceTemplates(t.Context(), nil) }},
	} {
		got, err := call[0]()
		want, wantErr := call[1]()
		if fmt.Sprintf("%T%v", got, err) != fmt.Sprintf("%T%v", want, wantErr) {
			t.Errorf("%s: %T, %v; want %T, %v", name, got, err, want, wantErr)
		}
	}
	n := 0
	for tool, err := range up.Tools(t.Context(), nil) {
		if n++; err != nil {
			t.Error(tool, err)
		}
	}
	if got, err := mcp.Call[string](t.Context(), up, "hello", map[string]string{}); err != nil || got != "hello" || n == 0 {
		t.Errorf("got %q, %v; %d tools", got, err, n)
	}
	_ = up.Close()
	for _, err := range up.Prompts(t.Context(), nil) {
		if !errors.Is(err, mcp.ErrClosed) {
			t.Error(err)
		}
	}
}

// oneOfEach returns a mux with a tool, a prompt, a resource and a template.
func oneOfEach(t *testing.T) *mcp.Mux {
	t.Helper()
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("hello", says("hello"))
	mux.Prompt("greet", mcp.PromptFunc(func(context.Context, none) (string, error) { return "hi", nil }, nil))
	mux.Resource("notes://1", mcp.ResourceFunc(func(context.Context, none) (string, error) { return "one", nil }, nil))
	mux.Resource("notes://{id}/x", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "x", nil }, nil))
	return mux
}

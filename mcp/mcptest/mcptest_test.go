// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type addIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type addOut struct {
	Sum int `json:"sum"`
}

type confirm struct {
	OK bool `json:"ok"`
}

// calculator returns a server with tools that compute, report progress, ask and wait.
func calculator() *mcp.Mux {
	mux := mcp.NewMux("calculator", "v1.0.0", nil)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in addIn) (addOut, error) {
		return addOut{in.A + in.B}, nil
	}, nil))
	mux.Tool("count", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			mcp.Progress(ctx, float64(i+1), 3, "")
		}
		mcp.ClientLogger(ctx).Warn("counted")
		return "done", nil
	}, nil))
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		answer, err := mcp.Elicit[confirm](ctx, "sure", "Are you sure?")
		return fmt.Sprint(answer.OK), err
	}, nil))
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 0, "waiting")
		<-ctx.Done()
		return "", context.Cause(ctx)
	}, nil))
	mux.Resource("note://today", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) {
		return "buy milk", nil
	}, nil))
	return mux
}

func TestRun(t *testing.T) {
	mux := calculator()
	logged := make(chan *mcp.LoggingMessageParams, 100)
	agrees := &mcptest.Client{Options: mcp.ClientOptions{
		LogLevel: mcp.LoggingLevelInfo,
		Log:      func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) { logged <- p },
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return mcptest.Accept(confirm{true}), nil
		},
	}}
	var modes []string
	agrees.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		modes = append(modes, t.Name())
		for name, check := range map[string]func(*testing.T, *mcp.Conn){
			"call": testCall, "question": testQuestion, "cancel": testCancel,
			"tools": testTools, "resource": testResource, "discover": testDiscover,
		} {
			t.Run(name, func(t *testing.T) { check(t, c) })
		}
		t.Run("progress", func(t *testing.T) { testProgress(t, c, logged) })
	})
	want := []string{
		"TestRun/modern/memory", "TestRun/legacy/memory", "TestRun/modern/stdio", "TestRun/legacy/stdio",
		"TestRun/modern/socket", "TestRun/legacy/socket", "TestRun/modern/http-json", "TestRun/legacy/http-json",
		"TestRun/modern/http-sse", "TestRun/legacy/http-sse", "TestRun/legacy/sse",
	}
	if !slices.Equal(modes, want) {
		t.Errorf("ran %q, want %q", modes, want)
	}
}

func testCall(t *testing.T, c *mcp.Conn) {
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: json.RawMessage(`{"a":1,"b":2}`)})
	if err != nil || string(res.StructuredContent) != `{"sum":3}` {
		t.Errorf("got %+v, %v", res, err)
	}
	_, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "subtract"})
	if e := new(mcp.Error); !errors.As(err, &e) || e.Code != mcp.CodeInvalidParams {
		t.Errorf("unknown tool: %v", err)
	}
}

func testProgress(t *testing.T, c *mcp.Conn, logged <-chan *mcp.LoggingMessageParams) {
	var got []float64
	ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) { got = append(got, p.Progress) })
	if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "count"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []float64{1, 2, 3}) {
		t.Errorf("got progress %v", got)
	}
	if p := <-logged; p.Level != mcp.LoggingLevelWarning {
		t.Errorf("got the message %+v", p)
	}
}

func testQuestion(t *testing.T, c *mcp.Conn) {
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
	if err != nil || res.Content[0].(*mcp.TextContent).Text != "true" {
		t.Errorf("got %+v, %v", res, err)
	}
}

func testCancel(t *testing.T, c *mcp.Conn) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.CallTool(mcp.WithProgress(ctx, func(*mcp.ProgressParams) { cancel() }), &mcp.CallToolParams{Name: "wait"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func testTools(t *testing.T, c *mcp.Conn) {
	var names []string
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"add", "ask", "count", "wait"}) {
		t.Errorf("got %q", names)
	}
}

func testResource(t *testing.T, c *mcp.Conn) {
	res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note://today"})
	if err != nil || res.Contents[0].Text != "buy milk" {
		t.Errorf("got %+v, %v", res, err)
	}
}

func testDiscover(t *testing.T, c *mcp.Conn) {
	res, err := c.Discover(t.Context())
	var info mcp.Implementation
	if err != nil || !res.Meta.Get(mcp.MetaServerInfo, &info) || info.Name != "calculator" || res.Capabilities.Tools == nil {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestListen(t *testing.T) {
	mux := calculator()
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		changes := make(chan mcp.Change, 1)
		filter := mcp.SubscriptionFilter{ResourceSubscriptions: []string{"note://today", "note://never"}}
		s, err := c.Listen(t.Context(), filter, func(change mcp.Change) { changes <- change })
		if err != nil || !slices.Equal(s.Accepted().ResourceSubscriptions, []string{"note://today"}) {
			t.Fatalf("got %+v, %v", s, err)
		}
		mux.ResourceUpdated("note://today")
		if got, want := <-changes, (mcp.Change{Method: mcp.NotificationResourceUpdated, URI: "note://today"}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestClientOfAnyVersion(t *testing.T) {
	mux := calculator()
	for _, version := range append(mcp.ModernVersions(), mcp.LegacyVersions()...) {
		t.Run(version, func(t *testing.T) {
			c := (&mcptest.Client{Options: mcp.ClientOptions{Version: version}}).Connect(t, mux)
			if c.Version() != version {
				t.Errorf("spoke %s", c.Version())
			}
			testTools(t, c)
		})
	}
}

func TestDo(t *testing.T) {
	res, rec, err := mcptest.Do(t, calculator(), mcptest.NewRequest(mcp.MethodCallTool, map[string]any{"name": "count"}))
	if err != nil || res.(*mcp.CallToolResult).IsError {
		t.Errorf("got %+v, %v", res, err)
	}
	var methods []string
	for _, n := range rec.Notifications() {
		methods = append(methods, n.Method)
	}
	if !slices.Equal(methods, slices.Repeat([]string{mcp.NotificationProgress}, 3)) {
		t.Errorf("recorded %q", methods)
	}
}

func TestNewRequestPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic on params that are no object")
		}
	}()
	mcptest.NewRequest("tools/call", []int{1})
}

// failing is a testing.TB that records whether it failed.
type failing struct {
	testing.TB
	cleanup func()
	failed  bool
	text    string // of the last failure
}

func (f *failing) Cleanup(fn func()) { f.cleanup = fn }
func (f *failing) Errorf(format string, args ...any) {
	f.failed, f.text = true, fmt.Sprintf(format, args...)
}

func TestNoLeaks(t *testing.T) {
	f := &failing{TB: t}
	mcptest.NoLeaks(f)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { <-stop; close(done) }()
	f.cleanup()
	if !f.failed {
		t.Error("a running goroutine was not found")
	}
	close(stop)
	<-done
	f.failed = false
	f.cleanup()
	if f.failed {
		t.Error("an ended goroutine was found")
	}
}

// If the reader of an existing connection hands over to another goroutine during the test,
// that is not a leak. Two readers where there was one are.
func TestNoLeaksAllowsSuccessors(t *testing.T) {
	first, second, stop := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	worker := func(end <-chan struct{}) { <-end }
	start := func(end <-chan struct{}) { running.Go(func() { worker(end) }) }
	start(first)
	f := &failing{TB: t}
	mcptest.NoLeaks(f)
	start(second)
	close(first)
	f.cleanup()
	if f.failed {
		t.Errorf("a successor was taken for a leak: %s", f.text)
	}
	start(stop)
	f.cleanup()
	if !f.failed {
		t.Error("a second goroutine of the same function was not found")
	}
	close(second)
	close(stop)
	running.Wait()
}

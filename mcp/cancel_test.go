// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// T48: a client that cancels ends the context of the handler, and of no other
// request. Over HTTP the modern era cancels by going away, which has no reason.
func TestCancel(t *testing.T) {
	causes := make(chan error, 1)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 0, "begun")
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return "too late", nil
	}, nil))
	release := make(chan struct{})
	mux.Tool("other", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 0, "begun")
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-release:
			return "unharmed", nil
		}
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		begun, done := make(chan struct{}), make(chan string)
		go func() {
			ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) { close(begun) })
			res, err := c.CallTool(ctx, tool("other", ""))
			if err != nil {
				t.Error(err)
				res = &mcp.CallToolResult{}
			}
			done <- textOf(res)
		}()
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		_, err := c.CallTool(mcp.WithProgress(ctx, func(*mcp.ProgressParams) { cancel() }), tool("wait", ""))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
		cause := <-causes
		var cancelled *mcp.CancelError
		switch {
		case strings.Contains(t.Name(), "modern/http"):
			if !errors.Is(cause, context.Canceled) {
				t.Errorf("the cause is %v", cause)
			}
		case !errors.As(cause, &cancelled) || cancelled.Reason == "":
			t.Errorf("the cause is %v, want a CancelError with the reason", cause)
		}
		release <- struct{}{}
		if got := <-done; got != "unharmed" {
			t.Errorf("the other call got %q", got)
		}
	})
}

// T48: what was cancelled is not answered; nor does a cancellation of what is
// unknown, answered or malformed do any harm.
func TestCancelledIsNotAnswered(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		<-ctx.Done()
		return "too late", nil
	}, nil))
	mux.Tool("hello", says("hi"))
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			p := newPeer(t, mux, era)
			p.send(era.request("1", "tools/call", `"name":"wait"`))
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`)
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`)
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"bored"}}`)
			p.send(era.request("2", "tools/call", `"name":"hello"`))
			if got := p.read(); got.ID != mcp.IntID(2) || !strings.Contains(string(got.Result), "hi") {
				t.Errorf("got %s %s %v", got.ID, got.Result, got.Error)
			}
			if said := p.finish(); len(said) > 0 {
				t.Errorf("got %q as well", said)
			}
		})
	}
}

// A cancellation that follows its request at once finds it, however busy the
// server is.
func TestCancelAtOnce(t *testing.T) {
	const calls = 100
	causes := make(chan error, calls)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return "too late", nil
	}, nil))
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			wire, err := memory(t, mux).Connect(t.Context(), func(transport.Message, mcp.ID) {})
			if err != nil {
				t.Fatal(err)
			}
			send := func(id mcp.ID, method, body string) {
				if err := wire.Send(t.Context(), &transport.Outgoing{ID: id, Method: method, Body: []byte(body)}); err != nil {
					t.Error(err)
				}
			}
			if era.open != nil {
				if _, err := wire.Call(t.Context(), &transport.Outgoing{ID: mcp.StringID("open"), Method: "initialize", Body: []byte(era.open[0])}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range calls {
				id := strconv.Itoa(i + 1)
				send(mcp.IntID(int64(i+1)), "tools/call", era.request(id, "tools/call", `"name":"wait"`))
				send(mcp.ID{}, "notifications/cancelled", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
			}
			wire.Close()
			for range calls {
				var cancelled *mcp.CancelError
				if cause := <-causes; !errors.As(cause, &cancelled) {
					t.Fatalf("a call ended with %v", cause)
				}
			}
		})
	}
}

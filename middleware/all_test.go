// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// everything returns all server middleware, configured to reject nothing.
func everything() []mcp.Middleware {
	return append(aroundOne(),
		middleware.Visible(func(context.Context, mcp.Kind, string) bool { return true }),
		middleware.Allow(mcp.KindTool, "*"), middleware.Deny(mcp.KindResource, "secret:*"),
		middleware.Reshape(map[string]mcp.Shape{"never": {Name: "ever"}}))
}

// aroundOne returns the middleware that may be around a single tool.
func aroundOne() []mcp.Middleware {
	l := slog.New(slog.DiscardHandler)
	return []mcp.Middleware{
		middleware.RequestID(nil), middleware.Logger(l), middleware.Metrics(discard{}, nil), middleware.Recover(l),
		middleware.RateLimit(middleware.ByAll(middleware.ByPrincipal, middleware.ByTool), middleware.NewTokenBucket(1e6, time.Second, nil)),
		middleware.RequireScopes("a"), middleware.Concurrency(10, 10),
		middleware.Timeout(time.Minute), middleware.Heartbeat(time.Millisecond), middleware.MaxResult(1 << 20),
		middleware.Audit(func(context.Context, middleware.AuditRecord) {}, nil),
	}
}

// With all middleware, on the server and around a tool, everything works as without it:
// progress, questions, errors, lists and subscriptions.
func TestEverything(t *testing.T) {
	type form struct {
		Name string `json:"name"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(everything()...)
	mux.With(aroundOne()...).Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 2, "half")
		f, err := mcp.Elicit[form](ctx, "name", "Who are you?")
		return "hello " + f.Name, err
	}, nil))
	mux.Tool("fail", answering(nil, mcp.Errorf(7, "no").WithData("data")))
	mux.Resource("r:r", mcp.ResourceFunc(func(context.Context, none) (string, error) { return "read", nil }, nil))

	client := &mcptest.Client{
		Principal: &mcp.Principal{Subject: "ann", Scopes: []string{"a"}},
		Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return mcptest.Accept(form{"Ada"}), nil
		}},
	}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		progress := 0
		ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) { progress++ })
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "greet"})
		if err != nil || textOf(t, res) != "hello Ada" || progress == 0 {
			t.Errorf("a call: got %v, %v, progress %d times", res, err, progress)
		}
		_, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "fail"})
		if wantCode(t, err, 7); !strings.Contains(err.Error(), "no") {
			t.Errorf("an error: got %v", err)
		}
		if list, err := c.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 1 {
			t.Errorf("a list: got %v, %v", list, err)
		}
		if read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "r:r"}); err != nil || read.Contents[0].Text != "read" {
			t.Errorf("a resource: got %v, %v", read, err)
		}
		if s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {}); err != nil || !s.Accepted().ToolsListChanged {
			t.Errorf("a subscription: got %v, %v", s, err)
		}
	})
}

// The same holds for the middleware of a client.
func TestEverythingOfClient(t *testing.T) {
	mux := serving(mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 2, "half")
		return "called", nil
	}, nil))
	mux.Resource("r:r", mcp.ResourceFunc(func(context.Context, none) (string, error) { return "read", nil }, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		l := slog.New(slog.DiscardHandler)
		c.Use(
			middleware.RequestID(nil), middleware.Logger(l), middleware.Metrics(discard{}, nil), middleware.Recover(l),
			middleware.NewCache(nil).Middleware, middleware.Singleflight(), middleware.Retry(&middleware.RetryOptions{Tools: true}),
			middleware.RateLimit(middleware.ByTool, middleware.NewTokenBucket(1e6, time.Second, nil)),
			middleware.Concurrency(10, 10), middleware.Timeout(time.Minute), middleware.MaxResult(1<<20),
		)
		progress := 0
		ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) { progress++ })
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "t"})
		if err != nil || textOf(t, res) != "called" || progress != 1 {
			t.Errorf("a call: got %v, %v, progress %d times", res, err, progress)
		}
		for range 2 {
			if read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "r:r"}); err != nil || read.Contents[0].Text != "read" {
				t.Errorf("a resource: got %v, %v", read, err)
			}
		}
		for _, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Error(err)
			}
		}
		s, err := c.Subscribe(t.Context(), "r:r", func(string) {})
		if err != nil {
			t.Errorf("a subscription: got %v", err)
			return
		}
		s.Close()
	})
}

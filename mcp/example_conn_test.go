// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-psi/psi/mcp"
)

// A failed tool and a failed request return different kinds of errors.
func ExampleCall() {
	mux := mcp.NewMux("bank", "v1.0.0", nil)
	mux.Tool("pay", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		return "", errors.New("the account is empty")
	}, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	_, err = mcp.Call[string](ctx, conn, "pay", nil)
	if failed, ok := errors.AsType[*mcp.ToolError](err); ok {
		fmt.Println("for the model:", failed.Result.Content[0].(*mcp.TextContent).Text)
	}
	_, err = mcp.Call[string](ctx, conn, "borrow", nil)
	fmt.Println(mcp.CodeOf(err), err)
	// Output:
	// for the model: the account is empty
	// -32602 unknown tool "borrow" (code -32602)
}

// A method of one's own is called with Do.
func ExampleDo() {
	type stats struct {
		mcp.ResultBase
		Notes int `json:"notes"`
	}
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Handle("acme/stats", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return &stats{Notes: 3}, nil }))
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	got, err := mcp.Do[stats](ctx, conn, "acme/stats", map[string]string{"user": "ada"})
	fmt.Println(got.Notes, err)
	// Output: 3 <nil>
}

// A request of any method can be made and sent with all its parts, here with metadata of one's
// own.
func ExampleNewRequest() {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("hello", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		var tenant string
		mcp.RequestFromContext(ctx).Meta().Get("acme/tenant", &tenant)
		return "hello " + tenant, nil
	}, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	req, err := mcp.NewRequest(mcp.MethodCallTool, map[string]any{"name": "hello", "_meta": map[string]string{"acme/tenant": "north"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := conn.Do(ctx, req)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.(*mcp.CallToolResult).Content[0].(*mcp.TextContent).Text)
	// Output: hello north
}

// Middleware of a connection sees the requests that it sends.
func ExampleConn_Use() {
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	conn.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			fmt.Println("sending", req.Method, req.Name())
			return next.ServeMCP(ctx, req)
		})
	})

	fmt.Println(mcp.Call[string](ctx, conn, "hello", nil))
	// Output:
	// sending tools/call hello
	// hello <nil>
}

// The server reports that a resource has changed, and the client reads it again.
func ExampleConn_Subscribe() {
	text := "closed"
	mux := mcp.NewMux("shop", "v1.0.0", nil)
	mux.Resource("shop://door", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return text, nil }, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	updates := make(chan string, 10)
	subscription, err := conn.Subscribe(ctx, "shop://door", func(uri string) { updates <- uri })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer subscription.Close()

	text = "open"
	mux.ResourceUpdated("shop://door")
	res, err := conn.ReadResource(ctx, &mcp.ReadResourceParams{URI: <-updates})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Contents[0].URI, "is", res.Contents[0].Text)
	// Output: shop://door is open
}

// An overloaded server tells clients when to retry.
func ExampleNewRateLimitedError() {
	busy := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.NewRateLimitedError(30*time.Second, "all printers are busy")
	})
	mux := mcp.NewMux("printer", "v1.0.0", nil)
	mux.Tool("print", busy)
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	_, err = conn.CallTool(ctx, &mcp.CallToolParams{Name: "print"})
	after, limited := mcp.RetryAfter(err) // middleware.Retry waits that long
	fmt.Println(limited, after)
	// Output: true 30s
}

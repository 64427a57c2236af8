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

// A method without a Conn method is called with NewRequest. The members of its result are
// in Extra.
func ExampleNewRequest() {
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

	req, err := mcp.NewRequest("acme/stats", map[string]string{"user": "ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := conn.ServeMCP(ctx, req)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s notes\n", res.(*mcp.EmptyResult).Extra["notes"])
	// Output: 3 notes
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// Related handlers are registered in a group and share its middleware.
func ExampleMux_Group() {
	hello := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil)
	closed := func(mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return mcp.ErrorResult(errors.New("come back tomorrow")), nil
		})
	}
	mux := mcp.NewMux("shop", "v1.0.0", nil)
	mux.Tool("look", hello)
	mux.Group(func(g *mcp.Mux) {
		g.Use(closed)
		g.Tool("buy", hello)
		g.Tool("sell", hello)
	})

	printCall(mux, "look", `{}`)
	printCall(mux, "buy", `{}`)
	// Output:
	// hello
	// come back tomorrow
}

// The identity of the caller comes from the context, never from an argument.
func ExamplePrincipalFromContext() {
	notes := map[string]string{"ada": "milk"}
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Tool("read", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		caller := mcp.PrincipalFromContext(ctx)
		if caller == nil || !caller.HasScope("notes:read") {
			return "", mcp.NewInsufficientScopeError("notes:read")
		}
		return notes[caller.Subject], nil
	}, nil))

	ada := &mcptest.Client{Principal: &mcp.Principal{Issuer: "example", Subject: "ada", Scopes: []string{"notes:read"}}}
	for _, client := range []*mcptest.Client{ada, {}} {
		req := client.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "read"})
		res, err := mux.ServeMCP(context.Background(), req)
		if err != nil {
			fmt.Println("refused:", mcp.CodeOf(err) == mcp.CodeInsufficientScope)
			continue
		}
		fmt.Println(res.(*mcp.CallToolResult).Content[0].(*mcp.TextContent).Text)
	}
	// Output:
	// milk
	// refused: true
}

// Chain wraps a single handler, without a mux.
func ExampleChain() {
	named := func(name string) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				fmt.Println(name)
				return next.ServeMCP(ctx, req)
			})
		}
	}
	hello := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil)

	printCall(mcp.Chain(hello, named("outer"), named("inner")), "hello", `{}`)
	// Output:
	// outer
	// inner
	// hello
}

// A method outside of the specification has its own Handler and result type.
func ExampleMux_Handle() {
	type stats struct {
		mcp.ResultBase
		Notes int `json:"notes"`
	}
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Handle("acme/stats", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var in struct {
			User string `json:"user"`
		}
		if err := req.Decode(&in); err != nil {
			return nil, err // says which member did not fit
		}
		return &stats{Notes: len(in.User)}, nil
	}))

	res, err := mux.ServeMCP(context.Background(), mcptest.NewRequest("acme/stats", map[string]string{"user": "ada"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.(*stats).Notes)
	// Output: 3
}

// Walk visits everything a server offers, here to print it at startup.
func ExampleMux_Walk() {
	hello := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil)
	inner := mcp.NewMux("inner", "v1.0.0", nil)
	inner.Tool("hello", hello)
	mux := mcp.NewMux("outer", "v1.0.0", nil)
	mux.Tool("hello", hello)
	mux.Resource("docs://readme", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "read me", nil }, nil))
	mux.Mount("inner_", inner)

	err := mux.Walk(func(method, name string, _ mcp.Handler) error {
		fmt.Println(method, name)
		return nil
	})
	fmt.Println(err)
	// Output:
	// tools/call hello
	// resources/read docs://readme
	// tools/call inner_hello
	// <nil>
}

// Tools can be added and removed while the server runs. Subscribed clients are notified.
func ExampleMux_RemoveTool() {
	hello := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil)
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("hello", hello)
	mux.Tool("goodbye", hello)
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	changes := make(chan mcp.Change, 10)
	listening, err := conn.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(c mcp.Change) { changes <- c })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer listening.Close()

	mux.RemoveTool("goodbye")
	fmt.Println((<-changes).Method)
	for tool, err := range conn.Tools(ctx, nil) {
		fmt.Println(tool.Name, err)
	}
	// Output:
	// notifications/tools/list_changed
	// hello <nil>
}

// Describe lists a Handler that is not a typed function under the given description.
func ExampleWithDescription() {
	raw := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return mcp.TextResult(fmt.Sprintf("%d bytes of arguments", len(req.Arguments()))), nil
	})
	mux := mcp.NewMux("raw", "v1.0.0", nil)
	mux.Tool("count", mcp.WithDescription(raw, &mcp.Tool{
		Description: "Count the bytes of the arguments.",
		InputSchema: []byte(`{"type":"object","properties":{"a":{"type":"integer"}}}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)},
	}))

	res, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodListTools, nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range res.(*mcp.ListToolsResult).Tools {
		fmt.Println(tool.Name+":", tool.Description)
	}
	printCall(mux, "count", `{"a":1}`)
	// Output:
	// count: Count the bytes of the arguments.
	// 7 bytes of arguments
}

// Most errors are for the model, which reads them as the result of the tool. An [mcp.Error]
// is for the client: the request itself fails with its code.
func ExampleErrorf() {
	mux := mcp.NewMux("bank", "v1.0.0", nil)
	mux.Tool("pay", mcp.ToolFunc(func(_ context.Context, in struct {
		Amount int `json:"amount"`
	}) (string, error) {
		switch {
		case in.Amount > 1000:
			return "", mcp.Errorf(-32050, "the bank is closed")
		case in.Amount > 100:
			return "", errors.New("100 is the most that can be paid at once")
		}
		return "paid", nil
	}, nil))

	printCall(mux, "pay", `{"amount":10}`)
	printCall(mux, "pay", `{"amount":200}`)
	printCall(mux, "pay", `{"amount":2000}`)
	// Output:
	// paid
	// 100 is the most that can be paid at once
	// error: the bank is closed (code -32050)
}

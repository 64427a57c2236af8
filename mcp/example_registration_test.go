// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-psi/psi/mcp"
)

// A tool is a function with a name and a description for the model.
func ExampleMux_Tool() {
	type input struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type output struct {
		Sum int `json:"sum"`
	}
	add := func(_ context.Context, in input) (output, error) { return output{in.A + in.B}, nil }
	mux := mcp.NewMux("calculator", "v1.0.0", nil)
	mux.Tool("add", mcp.ToolFunc(add, &mcp.Tool{Description: "Add two integers."}))

	printCall(mux, "add", `{"a":2,"b":3}`)
	printCall(mux, "add", `{"a":2,"b":"three"}`)
	// Output:
	// {"sum":5}
	// invalid arguments:
	// /b: expected integer, got string "three"
}

// A template serves all resources that it matches. Its variables are passed in the fields
// of the function's argument.
func ExampleMux_Resource() {
	mux := mcp.NewMux("weather", "v1.0.0", nil)
	mux.Resource("weather://{city}/today", mcp.ResourceFunc(func(_ context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		return "sunny in " + in.City, nil
	}, &mcp.Resource{Name: "weather", MIMEType: "text/plain"}))

	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	res, err := conn.ReadResource(ctx, &mcp.ReadResourceParams{URI: "weather://lisbon/today"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Contents[0].Text)
	// Output: sunny in lisbon
}

// With wraps only the handlers that are registered through it.
func ExampleMux_With() {
	loud := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			fmt.Println("calling", req.Name())
			return next.ServeMCP(ctx, req)
		})
	}
	hello := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil)
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.With(loud).Tool("hello", hello)
	mux.Tool("quiet_hello", hello)

	printCall(mux, "hello", `{}`)
	printCall(mux, "quiet_hello", `{}`)
	// Output:
	// calling hello
	// hello
	// hello
}

// ElicitQuestion asks for the fields of a struct. Ask sends several questions together.
func ExampleElicitQuestion() {
	mux := mcp.NewMux("shop", "v1.0.0", nil)
	mux.Tool("order", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		var size struct {
			Size string `json:"size" jsonschema:"enum=small,enum=large"`
		}
		var address struct {
			Street string `json:"street" jsonschema:"minLength=1"`
		}
		err := mcp.Ask(ctx,
			mcp.ElicitQuestion("size", "Which size?", &size),
			mcp.ElicitQuestion("address", "Where to?", &address))
		return "a " + size.Size + " one to " + address.Street, err
	}, nil))
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{
		Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			answer := `{"size":"large"}`
			if p.Message == "Where to?" {
				answer = `{"street":"Via Roma 1"}`
			}
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: []byte(answer)}, nil
		},
	})
	ctx := context.Background()
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "order", nil))
	// Output: a large one to Via Roma 1 <nil>
}

// While a mounted server is gone, its tools are missing from the lists.
func ExampleMux_Mount_reconnecting() {
	weather := mcp.NewMux("weather", "v1.0.0", nil)
	weather.Tool("today", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "sunny", nil }, nil))
	ctx := context.Background()

	client := mcp.NewClient("gateway", "v1.0.0", &mcp.ClientOptions{Forward: true})
	up := client.Maintain(ctx, mcp.InProcess(weather), &mcp.UpstreamOptions{ // or any other transport
		Logger: slog.New(slog.DiscardHandler),
	})
	defer up.Close()
	mux := mcp.NewMux("gateway", "v1.0.0", nil)
	mux.Mount("weather_", up)

	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[string](ctx, conn, "weather_today", nil))
	// Output: sunny <nil>
}

// The model sees the public text. Logs and middleware get the error.
func ExamplePrivateError() {
	errDatabase := errors.New("dial tcp 10.0.0.7:5432: connection refused")
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.ServeMCP(ctx, req)
			if r, ok := res.(*mcp.CallToolResult); ok && r.Err() != nil {
				fmt.Println("log:", r.Err())
			}
			return res, err
		})
	})
	mux.Tool("notes", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		return "", &mcp.PrivateError{Public: "the notes cannot be loaded now", Err: errDatabase}
	}, nil))

	printCall(mux, "notes", `{}`)
	// Output:
	// log: dial tcp 10.0.0.7:5432: connection refused
	// the notes cannot be loaded now
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"slices"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// printCall calls a tool and prints what the model sees.
func printCall(h mcp.Handler, name, arguments string) {
	req := mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: name, Arguments: []byte(arguments)})
	res, err := h.ServeMCP(context.Background(), req)
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	for _, block := range res.(*mcp.CallToolResult).Content {
		fmt.Println(block.(*mcp.TextContent).Text)
	}
}

func ExampleMux() {
	type noteIn struct {
		ID string `json:"id"`
	}
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Tool("ping", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "pong", nil }, nil))
	mux.Resource("notes://{id}", mcp.ResourceFunc(func(_ context.Context, in noteIn) (string, error) {
		return "the text of note " + in.ID, nil
	}, nil))

	printCall(mux, "ping", `{}`)
	res, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "notes://7"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.(*mcp.ReadResourceResult).Contents[0].Text)
	// Output:
	// pong
	// the text of note 7
}

// Arguments are validated before the function is called. Errors explain to the model how to
// correct them.
func ExampleToolFunc() {
	type forecastIn struct {
		City string `json:"city"`
		Unit string `json:"unit,omitzero" jsonschema:"enum=celsius,enum=fahrenheit,default=celsius"`
	}
	type forecastOut struct {
		Degrees int    `json:"degrees"`
		Unit    string `json:"unit"`
	}
	forecast := func(_ context.Context, in forecastIn) (forecastOut, error) {
		if in.City == "Atlantis" {
			return forecastOut{}, fmt.Errorf("%s is under water", in.City) // for the model
		}
		return forecastOut{21, in.Unit}, nil
	}
	mux := mcp.NewMux("weather", "v1.0.0", nil)
	mux.Tool("forecast", mcp.ToolFunc(forecast, &mcp.Tool{Description: "Tell tomorrow's weather."}))

	printCall(mux, "forecast", `{"city":"Lisbon"}`)
	printCall(mux, "forecast", `{"city":"Lisbon","unit":"Celsius"}`)
	printCall(mux, "forecast", `{"city":"Atlantis"}`)
	// Output:
	// {"degrees":21,"unit":"celsius"}
	// invalid arguments:
	// /unit: expected one of the allowed values, got string "Celsius"; allowed: "celsius", "fahrenheit"; did you mean "celsius"?
	// Atlantis is under water
}

// The values of an enum are the completions of the argument.
func ExamplePromptFunc() {
	type reviewIn struct {
		Language string `json:"language" jsonschema:"enum=go,enum=rust,enum=ruby"`
	}
	mux := mcp.NewMux("prompts", "v1.0.0", nil)
	mux.Prompt("review", mcp.PromptFunc(func(_ context.Context, in reviewIn) (string, error) {
		return "Review this " + in.Language + " code.", nil
	}, nil))

	res, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{
		Ref:      mcp.CompleteRef{Type: "ref/prompt", Name: "review"},
		Argument: mcp.CompleteArgument{Name: "language", Value: "r"},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.(*mcp.CompleteResult).Completion.Values)
	// Output: [rust ruby]
}

func ExampleMux_Mount() {
	github := mcp.NewMux("github", "v1.0.0", nil)
	github.Tool("search", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "42 repositories", nil }, nil))
	files := mcp.NewMux("files", "v1.0.0", nil)
	files.Tool("search", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "7 files", nil }, nil))

	mux := mcp.NewMux("gateway", "v1.0.0", nil)
	mux.Mount("github_", github)
	mux.Mount("files_", files)

	printCall(mux, "github_search", `{}`)
	printCall(mux, "files_search", `{}`)
	// Output:
	// 42 repositories
	// 7 files
}

// One middleware can wrap a whole mux, some of its handlers or a single one.
func ExampleMiddleware() {
	sign := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.ServeMCP(ctx, req)
			r, ok := res.(*mcp.CallToolResult)
			if err != nil || !ok {
				return res, err
			}
			signed := *r // results are shared: change a copy
			signed.Content = append(slices.Clone(r.Content), mcp.Text("yours, psi"))
			return &signed, nil
		})
	}
	hello := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil)
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("hello", hello)
	mux.With(sign).Tool("hello_signed", hello)

	printCall(mux, "hello", `{}`)
	printCall(mux, "hello_signed", `{}`)
	// Output:
	// hello
	// hello
	// yours, psi
}

// A HandlerFunc chooses the mux for each request, here by the caller.
func ExampleHandlerFunc() {
	muxes := map[string]*mcp.Mux{}
	for _, name := range []string{"ada", "alan"} {
		muxes[name] = mcp.NewMux(name, "v1.0.0", nil)
		muxes[name].Tool("whoami", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return name, nil }, nil))
	}
	choose := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		return muxes[req.Principal.Subject].ServeMCP(ctx, req)
	})

	for _, user := range []string{"ada", "alan"} {
		caller := &mcptest.Client{Principal: &mcp.Principal{Issuer: "example", Subject: user}}
		res, err := choose.ServeMCP(context.Background(), caller.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "whoami"}))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.(*mcp.CallToolResult).Content[0].(*mcp.TextContent).Text)
	}
	// Output:
	// ada
	// alan
}

func ExampleFileServerFS() {
	docs := fstest.MapFS{ // or os.DirFS("docs"), or an embed.FS
		"readme.md":      {Data: []byte("# Read me")},
		"guide/start.md": {Data: []byte("# How to begin")},
		".env":           {Data: []byte("PASSWORD=x")},
	}
	mux := mcp.NewMux("docs", "v1.0.0", nil)
	mux.Resource("file:///docs/{+path}", mcp.FileServerFS(docs, nil))

	res, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodListResources, nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range res.(*mcp.ListResourcesResult).Resources {
		fmt.Println(r.URI, r.MIMEType, *r.Size)
	}
	for _, uri := range []string{"file:///docs/guide/start.md", "file:///docs/.env"} {
		res, err := mux.ServeMCP(context.Background(), mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri}))
		if err != nil {
			fmt.Println(mcp.CodeOf(err), uri)
			continue
		}
		fmt.Println(res.(*mcp.ReadResourceResult).Contents[0].Text)
	}
	// Output:
	// file:///docs/guide/start.md text/markdown 14
	// file:///docs/readme.md text/markdown 9
	// # How to begin
	// -32602 file:///docs/.env
}

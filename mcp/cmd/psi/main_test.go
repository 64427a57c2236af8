// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// isServer is the environment variable that turns the test binary into a server on standard
// input and output. With the value "more", it has more tools; with "stuck", it does not list them.
const isServer = "PSI_TEST_SERVER"

// isPsi is the environment variable that turns the test binary into psi.
const isPsi = "PSI_TEST_PSI"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(isPsi) != "":
		main()
	case os.Getenv(isServer) == "":
		os.Exit(m.Run())
	}
	mux := newServer()
	switch os.Getenv(isServer) {
	case "more":
		addAsker(mux)
	case "stuck":
		mux.Use(neverLists)
	}
	if err := mcpstdio.Serve(context.Background(), mux, nil); err != nil {
		os.Exit(1)
	}
}

// neverLists is middleware that tells when tools are to be listed, and does not answer.
func neverLists(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodListTools {
			fmt.Fprintln(os.Stderr, "stuck")
			<-ctx.Done()
		}
		return next.ServeMCP(ctx, req)
	})
}

type sum struct {
	Sum int `json:"sum"`
}

type order struct {
	Size   string   `json:"size" jsonschema:"title=How large,enum=small,enum=large"`
	Amount int      `json:"amount,omitzero" jsonschema:"minimum=1,default=1"`
	Extras []string `json:"extras,omitempty" jsonschema:"enum=olives,enum=capers"`
	Agreed bool     `json:"agreed"`
}

// newServer returns the server used by the examples in the help texts, with a few more
// tools.
func newServer() *mcp.Mux {
	mux := mcp.NewMux("kitchen", "v1.0.0", nil)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in struct {
		A int `json:"a" jsonschema:"The first one."`
		B int `json:"b" jsonschema:"The second one."`
	}) (sum, error) {
		return sum{in.A + in.B}, nil
	}, &mcp.Tool{Description: "Add two integers."}))
	mux.Tool("report", mcp.ToolFunc(report, &mcp.Tool{Description: "Write a report."}))
	mux.Prompt("explain", mcp.PromptFunc(func(_ context.Context, in struct {
		Topic string `json:"topic"`
	}) (string, error) {
		return "Explain " + in.Topic + ".", nil
	}, &mcp.Prompt{Description: "Explain a topic."}))
	mux.Resource("test://menu", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "soup, bread\n", nil },
		&mcp.Resource{Description: "What there is to eat."}))
	mux.Resource("test://recipes/{dish}", mcp.ResourceFunc(func(_ context.Context, in struct {
		Dish string `json:"dish"`
	}) (string, error) {
		return "Cook the " + in.Dish + ".", nil
	}, &mcp.Resource{Description: "How to cook a dish.", Completers: map[string]mcp.Completer{"dish": mcp.CompleteFrom("bread", "sorbet", "soup")}}))
	return mux
}

func report(ctx context.Context, in struct {
	Title string `json:"title" jsonschema:"maxLength=12"`
	Pages int    `json:"pages,omitempty" jsonschema:"minimum=1,maximum=9"`
}) (string, error) {
	for i := range in.Pages {
		mcp.Progress(ctx, float64(i+1), float64(in.Pages), "page")
	}
	return fmt.Sprintf("%s, %d pages", in.Title, in.Pages), nil
}

// addAsker adds tools that ask the user, fail, and return content other than text.
func addAsker(mux *mcp.Mux) {
	mux.Tool("order", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (order, error) {
		return mcp.Elicit[order](ctx, "order", "What will it be?")
	}, nil))
	mux.Tool("pay", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return "paid", mcp.ElicitURL(ctx, "pay", "Please pay.", "https://pay.example.com/1")
	}, nil))
	mux.Tool("lure", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return "paid", mcp.ElicitURL(ctx, "pay", "Please pay.", "https://\u0440\u0430y.example.com/1") // two of the letters are Cyrillic
	}, nil))
	mux.Tool("fail", mcp.ToolFunc(func(context.Context, struct {
		Dishes []string `json:"dishes,omitempty"`
	}) (string, error) {
		return "", errors.New("out of flour")
	}, nil))
	mux.Tool("media", mcp.ToolFunc(func(context.Context, struct{}) ([]mcp.Content, error) {
		return []mcp.Content{
			mcp.Text("three files"),
			&mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
			&mcp.AudioContent{Data: []byte("wav"), MIMEType: "audio/wav"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://../../etc", MIMEType: "x/y; \x1b[2J", Blob: []byte("blob")}},
			&mcp.ResourceLink{Resource: mcp.Resource{URI: "test://menu", Name: "menu"}},
		}, nil
	}, nil))
}

// serve serves a mux over HTTP.
func serve(t *testing.T, mux *mcp.Mux) (url string) {
	t.Helper()
	return mcptest.Serve(t, mcphttp.NewHandler(mux, nil))
}

// isolate hides the files of the user who runs the test from psi.
func isolate(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, home)
	}
	return home
}

// An outcome is the output of psi and its exit code.
type outcome struct {
	out, errOut string
	code        int
}

// psi runs a command line, given as words, with the given input.
func psi(t *testing.T, input string, words ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), words, strings.NewReader(input), &out, &errOut)
	return outcome{out.String(), errOut.String(), code}
}

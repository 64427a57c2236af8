// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
)

type order struct {
	Size   string   `json:"size" jsonschema:"title=How large,enum=small,enum=large"`
	Amount int      `json:"amount,omitzero" jsonschema:"minimum=1,default=1"`
	Extras []string `json:"extras,omitempty" jsonschema:"enum=olives,enum=capers"`
	Agreed bool     `json:"agreed"`
}

func newServer() *mcp.Mux {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Tool("count", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			mcp.Progress(ctx, float64(i+1), 3, "step")
		}
		return "done\x1b[2J", nil
	}, &mcp.Tool{Description: "Count to three."}))
	mux.Tool("order", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (order, error) {
		return mcp.Elicit[order](ctx, "order", "What will it be?")
	}, nil))
	mux.Tool("pay", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return "paid", mcp.ElicitURL(ctx, "pay", "Please pay.", "https://pay.example.com/1")
	}, nil))
	mux.Prompt("explain", mcp.PromptFunc(func(_ context.Context, in struct {
		Topic string `json:"topic"`
	}) (string, error) {
		return "Explain " + in.Topic + ".", nil
	}, nil))
	mux.Resource("test://doc", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "text\n", nil }, nil))
	return mux
}

func serve(t *testing.T) (url string) {
	t.Helper()
	return mcptest.Serve(t, mcphttp.NewHandler(newServer(), nil))
}

var tests = []struct {
	name, args, in string
	out, errOut    string // what is written, and a part of what is
	fails          string // a part of the error
}{
	{name: "list", args: "list", out: "tool count Count to three.\ntool order\ntool pay\nprompt explain\nresource test://doc\n"},
	{name: "progress", args: "call count", out: "done\uFFFD[2J\n", errOut: "\r[########................] 1/3 step\r[################........] 2/3 step\r[########################] 3/3 step\n"},
	{
		name: "question", args: "call order {}", in: "medium\n\nlarge\nperhaps\nfalse\n0\n3\n[\"olives\",\"capers\"]\n",
		out:    `{"size":"large","amount":3,"extras":["olives","capers"],"agreed":false}` + "\n",
		errOut: "The server asks: What will it be?\n(Write JSON or plain text. An empty line leaves a field out, ! declines.)\nsize: {\"type\":\"string\",\"enum\":[\"small\",\"large\"],\"title\":\"How large\"}\n> ",
	},
	{name: "defaults", args: "call order", in: "small\ntrue\n\n\n", out: `{"size":"small","amount":1,"agreed":true}` + "\n", errOut: `"default":1`},
	{name: "declined", args: "call order", in: "!\n", fails: "declined"},
	{name: "cancelled", args: "call order", in: "", fails: "cancelled"},
	{name: "consent", args: "call pay", in: "y\n", out: "paid\n", errOut: "It wants you to open a page of pay.example.com:\n  https://pay.example.com/1\nDo you agree?"},
	{name: "no consent", args: "call pay", in: "\n", fails: "declined"},
	{name: "read", args: "read test://doc", out: "text\n"},
	{name: "prompt", args: `prompt explain {"topic":"monads"}`, out: "Explain monads.\n"},
	{name: "no such tool", args: "call nothing", fails: "nothing"},
	{name: "no such subcommand", args: "dance", fails: "dance"},
	{name: "no object", args: "prompt explain topic", fails: "an object of strings"},
}

func TestRun(t *testing.T) {
	url := serve(t)
	for _, flags := range [][]string{nil, {"-version", mcp.LatestVersion}, {"-version", mcp.LegacyVersions()[0]}} {
		for _, test := range tests {
			t.Run(test.name+strings.Join(flags, " "), func(t *testing.T) {
				var out, errOut bytes.Buffer
				args := append(append(slices.Clip(flags), url), strings.Fields(test.args)...)
				err := run(t.Context(), args, strings.NewReader(test.in), &out, &errOut)
				if test.fails == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), test.fails) {
					t.Errorf("the error is %v, want %q", err, test.fails)
				}
				if out.String() != test.out || !strings.Contains(errOut.String(), test.errOut) {
					t.Errorf("wrote %q and %q, want %q and %q", &out, &errOut, test.out, test.errOut)
				}
			})
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range []string{"", "-version 1999-01-01 http://localhost", "-x", "ftp://x list", "-- /no/such/program"} {
		var out, errOut bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), strings.NewReader(""), &out, &errOut); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"context"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

type order struct {
	Size string `json:"size"`
}

func newServer() *mcp.Mux {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Tool("order", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (order, error) {
		mcp.Progress(ctx, 1, 2, "asking")
		return mcp.Elicit[order](ctx, "order", "What will it be?")
	}, &mcp.Tool{Description: "Order something."}))
	return mux
}

func TestRun(t *testing.T) {
	for _, test := range []struct{ words, in, out, fails string }{
		{words: "", out: `"order": "Order something."`},
		{words: "order", in: `{"size":"large"}`, out: `"{\"size\":\"large\"}"`},
		{words: "order {}", in: `{"size":"large"}`, out: "1 \"asking\"\n"},
		{words: "order", in: `{"size":1}`, fails: "/size: expected string"},
		{words: "order", in: "\n", fails: "declined"},
		{words: "nothing", fails: `unknown tool "nothing"`},
	} {
		var out strings.Builder
		u := &user{in: bufio.NewScanner(strings.NewReader(test.in)), out: &out}
		err := run(t.Context(), mcp.InProcess(newServer()), strings.Fields(test.words), u)
		if test.fails == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%q: the error is %v, want %q", test.words, err, test.fails)
		}
		if !strings.Contains(out.String(), test.out) {
			t.Errorf("%q: wrote %q, want %q", test.words, &out, test.out)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// plainLog is a logger that writes to b, without times, stacks and places.
func plainLog(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "stack" || a.Key == "mounted" || a.Key == "registered" {
			return slog.Attr{}
		}
		return a
	}}))
}

// subscriptionID is part of acknowledgements.
var subscriptionID = regexp.MustCompile(`"io.modelcontextprotocol/subscriptionId":\d+`)

// What a mux makes of a handler mounted on it that fails in every way.
func TestMountFaults(t *testing.T) {
	answers := []struct {
		name   string
		answer func() (mcp.Result, error)
	}{
		{"an error", func() (mcp.Result, error) { return nil, errors.New("secret") }},
		{"a coded error", func() (mcp.Result, error) { return nil, mcp.Errorf(77, "no").WithData(1) }},
		{"not found", func() (mcp.Result, error) { return nil, mcp.NewMethodNotFoundError("x") }},
		{"nothing", func() (mcp.Result, error) { return nil, nil }},
		{"another result", func() (mcp.Result, error) { return &mcp.EmptyResult{}, nil }},
		{"a question without a question", func() (mcp.Result, error) { return &mcp.InputRequired{}, nil }},
		{"a question", func() (mcp.Result, error) {
			return &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"r": {Method: mcp.MethodListRoots}}}, nil
		}},
		{"a panic", func() (mcp.Result, error) { panic("bug") }},
	}
	var text strings.Builder
	for _, s := range []sample{
		{mcp.MethodDiscover, ``}, {mcp.MethodListTools, ``}, {mcp.MethodListPrompts, ``}, {mcp.MethodListResources, ``}, {mcp.MethodListResourceTemplates, ``},
		{mcp.MethodCallTool, `"name":"in_a"`}, {mcp.MethodGetPrompt, `"name":"in_a"`}, {mcp.MethodReadResource, `"uri":"mount:in_:test://a"`},
		{mcp.MethodComplete, `"ref":{"type":"ref/prompt","name":"in_a"},"argument":{"name":"a","value":""}`},
		{mcp.MethodComplete, `"ref":{"type":"ref/resource","uri":"mount:in_:test://{a}"},"argument":{"name":"a","value":""}`},
		{mcp.MethodListen, `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["mount:in_:test://a"]}`}, {"vendor/x", ``},
	} {
		fmt.Fprintf(&text, "> %s %s\n", s.method, s.members)
		for _, a := range answers {
			var log bytes.Buffer
			mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: plainLog(&log)})
			mux.Tool("own", says("own"))
			mux.Mount("in_", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == s.method {
					return a.answer()
				}
				return nil, mcp.NewMethodNotFoundError(req.Method)
			}))
			ctx, cancel := context.WithCancel(t.Context())
			var told []string
			req := mcptest.NewRequest(s.method, json.RawMessage(s.params(metaModern)))
			res, err := core.Serve(ctx, mux, req, notifier(func(method string, params json.RawMessage) {
				told = append(told, method+" "+subscriptionID.ReplaceAllString(string(params), ""))
				cancel()
			}), plainLog(&log))
			cancel()
			fmt.Fprintf(&text, "  %s: %s\n", a.name, strings.Join(append(told, resultOf(res, err)), "\n    "))
			if log.Len() > 0 {
				fmt.Fprintf(&text, "    logged: %s\n", strings.ReplaceAll(strings.TrimSpace(log.String()), "\n", "\n    logged: "))
			}
		}
	}
	golden.Check(t, "mounts", text.String())
}

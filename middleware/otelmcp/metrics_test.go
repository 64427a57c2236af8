// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware/otelmcp"
)

const (
	serverDuration = "mcp.server.operation.duration"
	clientDuration = "mcp.client.operation.duration"
	serverSessions = "mcp.server.session.duration"
	clientSessions = "mcp.client.session.duration"
)

func TestMeasurements(t *testing.T) {
	version := " mcp.protocol.version=" + mcp.LatestVersion
	tool := func(name string) string {
		return "gen_ai.operation.name=execute_tool gen_ai.tool.name=" + name + " mcp.method.name=tools/call" + version
	}
	invented := mcptest.NewRequest(mcp.MethodCallTool, map[string]any{"name": "t", "_meta": map[string]any{mcp.MetaProtocolVersion: "9999-99-99"}})
	for name, test := range map[string]struct {
		h    mcp.Handler
		req  *mcp.Request
		want string
	}{
		"ok":               {answering(mcp.TextResult(""), nil), call("t"), tool("t")},
		"tool error":       {answering(mcp.ErrorResult(errors.New("")), nil), call("t"), "error.type=tool_error " + tool("t")},
		"plain error":      {answering(nil, errLost), call("t"), "error.type=-32603 " + tool("t") + " rpc.response.status_code=-32603"},
		"unknown tool":     {answering(nil, mcp.NewUnknownNameError("tool", "t")), call("t"), "error.type=-32602 " + tool("_OTHER") + " rpc.response.status_code=-32602"},
		"limited":          {answering(nil, mcp.NewRateLimitedError(1, "")), call("t"), "error.type=429 " + tool("_OTHER") + " rpc.response.status_code=429"},
		"own code":         {answering(nil, mcp.Errorf(7, "")), call("t"), "error.type=_OTHER " + tool("_OTHER") + " rpc.response.status_code=_OTHER"},
		"long name":        {answering(mcp.TextResult(""), nil), call(strings.Repeat("t", 1000)), tool("_OTHER")},
		"invented version": {answering(mcp.TextResult(""), nil), invented, strings.TrimSuffix(tool("t"), version)},
		"prompt": {answering(&mcp.GetPromptResult{}, nil), mcptest.NewRequest(mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "p"}),
			"gen_ai.prompt.name=p mcp.method.name=prompts/get" + version},
		"resource": {answering(&mcp.ReadResourceResult{}, nil), mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "a:a"}),
			"mcp.method.name=resources/read" + version},
		"own method": {answering(&mcp.EmptyResult{}, nil), mcptest.NewRequest("vendor/m", nil), "mcp.method.name=_OTHER" + version},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t)
			opts := o.options()
			_, _, _ = mcptest.Do(t, otelmcp.Server(opts)(test.h), test.req)
			if got := o.points(t, serverDuration); !slices.Equal(got, []string{test.want}) {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
		})
	}
}

func TestBuckets(t *testing.T) {
	o := observe(t)
	_, _ = otelmcp.Server(o.options())(answering(nil, nil)).ServeMCP(t.Context(), call("t"))
	want := []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300}
	if got := o.histogram(t, serverDuration)[0].Bounds; !slices.Equal(got, want) {
		t.Errorf("the bounds are %v", got)
	}
}

// Unknown names appear neither in the attributes of measurements nor in span names. Known
// names stay known, and are in span names from their start.
func TestNamesAreBounded(t *testing.T) {
	o := observe(t)
	opts := o.options()
	fails := false
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(otelmcp.Server(opts))
	for i := range 1001 {
		mux.Tool(fmt.Sprint(i), mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			if fails {
				return nil, mcp.Errorf(mcp.CodeInvalidParams, "no")
			}
			return mcp.TextResult(""), nil
		}))
	}
	spanOf := func(name string) string {
		_, _, _ = mcptest.Do(t, mux, call(name))
		return o.only(t).Name
	}
	for i := range 2000 {
		if got := spanOf(fmt.Sprint("made up ", i)); got != "tools/call" {
			t.Fatalf("the span is %s", got)
		}
	}
	check := func(name, want string) {
		if got := spanOf(name); got != want {
			t.Errorf("the span of %s is %s, want %s", name, got, want)
		}
	}
	for i := range 1000 {
		check(fmt.Sprint(i), fmt.Sprint("tools/call ", i))
	}
	check("1000", "tools/call") // there is no room
	check("0", "tools/call 0")
	fails = true
	check("0", "tools/call 0")
	series := map[string]bool{}
	for _, p := range o.points(t, serverDuration) {
		series[p] = true
	}
	if len(series) != 1003 { // unknown; 0 to 999; 1000, for which there is no room; 0 that failed
		t.Errorf("there are %d series, want 1003", len(series))
	}
}

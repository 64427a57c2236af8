// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// meter records measurements, except durations.
type meter struct {
	mu   sync.Mutex
	seen []string
}

func (m *meter) note(name string, labels []middleware.Label, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range labels {
		name += " " + l.Name + "=" + l.Value
	}
	m.seen = append(m.seen, strings.TrimPrefix(name, "mcp_")+value)
}

func (m *meter) Count(_ context.Context, name string, labels []middleware.Label, delta uint64) {
	m.note(name, labels, fmt.Sprintf(" %+d", delta))
}

func (m *meter) Gauge(_ context.Context, name string, labels []middleware.Label, delta int64) {
	m.note(name, labels, fmt.Sprintf(" %+d", delta))
}

func (m *meter) Observe(_ context.Context, name string, labels []middleware.Label, _ float64) {
	m.note(name, labels, "")
}

func (m *meter) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.seen
	m.seen = nil
	return seen
}

func TestMetrics(t *testing.T) {
	note := outgoing(t, mcp.NotificationRootsListChanged, nil)
	for name, test := range map[string]struct {
		h    mcp.Handler
		req  *mcp.Request
		want string // of requests_total
	}{
		"ok":           {answering(mcp.TextResult(""), nil), call("t"), "method=tools/call name=t outcome=ok code="},
		"isError":      {answering(mcp.ErrorResult(errors.New("")), nil), call("t"), "method=tools/call name=t outcome=isError code="},
		"asks":         {answering(&mcp.InputRequired{}, nil), call("t"), "method=tools/call name=t outcome=input_required code="},
		"internal":     {answering(nil, errLost), call("t"), "method=tools/call name=t outcome=error code=-32603"},
		"panic":        {panicking("boom"), call("t"), "method=tools/call name=t outcome=panic code=-32603"},
		"unknown tool": {answering(nil, mcp.NewUnknownNameError("tool", "t")), call("t"), "method=tools/call name=other outcome=error code=-32602"},
		"limited":      {answering(nil, mcp.NewRateLimitedError(1, "")), call("t"), "method=tools/call name=other outcome=error code=429"},
		"own code":     {answering(nil, mcp.Errorf(7, "")), call("t"), "method=tools/call name=other outcome=error code=other"},
		"long name":    {answering(mcp.TextResult(""), nil), call(strings.Repeat("t", 1000)), "method=tools/call name=other outcome=ok code="},
		"prompt":       {answering(&mcp.GetPromptResult{}, nil), mcptest.NewRequest(mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "p"}), "method=prompts/get name=p outcome=ok code="},
		"resource":     {answering(&mcp.ReadResourceResult{}, nil), mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "a:a"}), "method=resources/read name= outcome=ok code="},
		"list":         {answering(&mcp.ListToolsResult{}, nil), mcptest.NewRequest(mcp.MethodListTools, nil), "method=tools/list name= outcome=ok code="},
		"own method":   {answering(&mcp.EmptyResult{}, nil), mcptest.NewRequest("vendor/m", nil), "method=other name= outcome=ok code="},
		"notification": {answering(nil, nil), note, "method=notifications/roots/list_changed name= outcome=ok code="},
	} {
		t.Run(name, func(t *testing.T) {
			m := new(meter)
			_, _, _ = mcptest.Do(t, middleware.Metrics(m, nil)(test.h), test.req)
			method, _, _ := strings.Cut(test.want, " ")
			labels, _, _ := strings.Cut(test.want, " code=")
			want := []string{
				"requests_in_flight " + method + " +1", "requests_in_flight " + method + " -1",
				"requests_total " + test.want + " +1", "request_duration_seconds " + labels,
			}
			if got := m.take(); !slices.Equal(got, want) {
				t.Errorf("got\n%q, want\n%q", got, want)
			}
		})
	}
	mustPanic(t, "Metrics without a meter", func() { middleware.Metrics(nil, nil) })
}

// Unknown names do not become labels. A name that has become a label remains one.
func TestMetricsNames(t *testing.T) {
	m := new(meter)
	fails := false
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.Metrics(m, nil))
	for i := range 1001 {
		mux.Tool(fmt.Sprint(i), mcp.ToolFunc(func(context.Context, none) (string, error) {
			if fails {
				return "", mcp.Errorf(mcp.CodeInvalidParams, "no")
			}
			return "", nil
		}, nil))
	}
	labels := func(name string) string {
		_, _, _ = mcptest.Do(t, mux, call(name))
		seen := m.take()
		_, label, _ := strings.Cut(seen[len(seen)-1], " name=")
		label, _, _ = strings.Cut(label, " ")
		return label
	}
	check := func(name, want string) {
		if got := labels(name); got != want {
			t.Errorf("%s is labelled %s, want %s", name, got, want)
		}
	}
	for i := range 1000 {
		check(fmt.Sprint(i), fmt.Sprint(i))
	}
	check("made up", "other")
	check("1000", "other") // there is no room
	check("0", "0")
	fails = true
	check("0", "0")
}

func TestMetricsOfSubscription(t *testing.T) {
	m := new(meter)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = serving(says(""), middleware.Metrics(m, nil)).ServeMCP(ctx, mcptest.NewRequest(mcp.MethodListen, nil))
	if got := m.take(); len(got) != 3 || strings.Contains(strings.Join(got, ""), "duration") {
		t.Errorf("got %q", got)
	}
}

// counters is a Meter that prints its counts.
type counters struct{}

func (counters) Count(_ context.Context, name string, labels []middleware.Label, delta uint64) {
	if name == middleware.MetricRequests {
		fmt.Println(name, labels, delta) //nolint:forbidigo // the example prints it
	}
}

func (counters) Gauge(context.Context, string, []middleware.Label, int64)     {}
func (counters) Observe(context.Context, string, []middleware.Label, float64) {}

func ExampleMetrics() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Use(middleware.Metrics(counters{}, nil))
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	for _, name := range []string{"hello", "made up"} {
		req, err := mcp.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: name})
		if err != nil {
			fmt.Println(err)
			return
		}
		_, _ = mux.ServeMCP(context.Background(), req)
	}
	// Output:
	// mcp_requests_total [{method tools/call} {name hello} {outcome ok} {code }] 1
	// mcp_requests_total [{method tools/call} {name other} {outcome error} {code -32602}] 1
}

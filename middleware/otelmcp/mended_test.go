// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware/otelmcp"
)

// The number of changes that a lenient mux makes to arguments is recorded in the span and
// counted. Calls that need no change have neither.
func TestMendedArguments(t *testing.T) {
	o := observe(t)
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Lenient: true, Logger: slog.New(slog.DiscardHandler)})
	mux.Use(otelmcp.Server(o.options()))
	type in struct{ A, B int }
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in in) (string, error) { return "", nil }, nil))
	for args, want := range map[string]string{
		`{"A":1,"B":2}`:             "",
		`{"A":"1","B":"2","C":"x"}`: "mcp.tool.mended_arguments=3",
	} {
		req := mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "add", Arguments: []byte(args)})
		if _, _, err := mcptest.Do(t, mux, req); err != nil {
			t.Fatal(err)
		}
		if got := written(o.only(t).Attributes); !strings.Contains(got, want) || want == "" && strings.Contains(got, "mended") {
			t.Errorf("%s: the attributes are %s, want %q", args, got, want)
		}
	}
	points := o.sum(t, "mcp.server.mended_arguments")
	if len(points) != 1 || points[0].Value != 3 || !strings.Contains(written(points[0].Attributes.ToSlice()), "gen_ai.tool.name=add") {
		t.Errorf("counted %+v", points)
	}
}

func (o *observed) sum(t *testing.T, name string) []metricdata.DataPoint[int64] {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := o.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				return m.Data.(metricdata.Sum[int64]).DataPoints
			}
		}
	}
	return nil
}

// The first span of a tool has the tool's name, even if the call was mended or another call
// was faster.
func TestNameOfFirstSpans(t *testing.T) {
	o := observe(t)
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Lenient: true, Logger: slog.New(slog.DiscardHandler)})
	mux.Use(otelmcp.Server(o.options()))
	type in struct {
		A int `json:"a"`
	}
	mux.Tool("mended", mcp.ToolFunc(func(context.Context, in) (string, error) { return "", nil }, nil))
	var both sync.WaitGroup
	both.Add(2)
	mux.Tool("together", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		both.Done()
		both.Wait()
		return "", nil
	}, nil))
	var calls sync.WaitGroup
	for _, params := range []*mcp.CallToolParams{{Name: "mended", Arguments: []byte(`{"a":"1"}`)}, {Name: "together"}, {Name: "together"}} {
		calls.Go(func() {
			if _, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodCallTool, params)); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	var names []string
	for _, span := range o.spans() {
		names = append(names, span.Name)
	}
	slices.Sort(names)
	if want := []string{"tools/call mended", "tools/call together", "tools/call together"}; !slices.Equal(names, want) {
		t.Errorf("the spans are %q, want %q", names, want)
	}
}

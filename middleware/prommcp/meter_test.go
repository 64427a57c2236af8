// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package prommcp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
	"github.com/go-psi/psi/middleware/prommcp"
)

func newMux(opts mcp.MuxOptions) *mcp.Mux {
	opts.Logger = slog.New(slog.DiscardHandler)
	mux := mcp.NewMux("m", "v1", &opts)
	type count struct {
		N int `json:"n"`
	}
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in count) (string, error) {
		if in.N < 0 {
			return "", errors.New("too small")
		}
		return "ok", nil
	}, nil))
	mux.Tool("panics", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { panic("a bug") }, nil))
	mux.Prompt("greet", mcp.PromptFunc(func(context.Context, struct{}) (string, error) { return "Hi", nil }, nil))
	return mux
}

// calls makes one request of each kind.
func calls(t *testing.T, c *mcp.Conn) {
	t.Helper()
	for _, args := range []string{`{"n":1}`, `{"n":-1}`, `{"n":"x"}`} {
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: []byte(args)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"panics", "invented-1", "invented-2"} {
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name}); err == nil {
			t.Fatalf("%s has not failed", name)
		}
	}
	if _, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet"}); err != nil {
		t.Fatal(err)
	}
}

const (
	add  = `gen_ai_prompt_name="",gen_ai_tool_name="add",mcp_method_name="tools/call"`
	odd  = `gen_ai_prompt_name="",gen_ai_tool_name="_OTHER",mcp_method_name="tools/call"`
	hook = `gen_ai_prompt_name="",gen_ai_tool_name="panics",mcp_method_name="tools/call"`
	asks = `gen_ai_prompt_name="greet",gen_ai_tool_name="",mcp_method_name="prompts/get"`
)

// The metrics and their labels are those of the conventions, over all transports and in all
// eras, and no name that a client invents becomes a label.
func TestServer(t *testing.T) {
	registry, mux := prometheus.NewRegistry(), newMux(mcp.MuxOptions{})
	cause := func(err error) string {
		if strings.Contains(err.Error(), "too small") {
			return "small"
		}
		return ""
	}
	mux.Use(middleware.Metrics(prommcp.Server(registry), &middleware.MetricsOptions{Cause: cause}))
	runs := 0
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		runs++
		calls(t, c)
	})
	calls := ofCalls(t, registry, "mcp_server_operations_total")
	for series, n := range map[string]int{
		`cause="",error_type="",` + add + `,rpc_response_status_code=""`:                1,
		`cause="small",error_type="tool_error",` + add + `,rpc_response_status_code=""`: 1,
		`cause="",error_type="tool_error",` + add + `,rpc_response_status_code=""`:      1,
		`cause="",error_type="panic",` + hook + `,rpc_response_status_code="-32603"`:    1,
		`cause="",error_type="-32602",` + odd + `,rpc_response_status_code="-32602"`:    2,
		`cause="",error_type="",` + asks + `,rpc_response_status_code=""`:               1,
	} {
		if want := fmt.Sprintf("mcp_server_operations_total{%s} %d", series, n*runs); !strings.Contains(calls, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, calls)
		}
	}
	durations := ofCalls(t, registry, "mcp_server_operation_duration_seconds")
	for series, n := range map[string]int{
		`error_type="",` + add: 1, `error_type="tool_error",` + add: 2, `error_type="panic",` + hook: 1, `error_type="_OTHER",` + odd: 2, `error_type="",` + asks: 1,
	} {
		if want := fmt.Sprintf("mcp_server_operation_duration_seconds_count{%s} %d", series, n*runs); !strings.Contains(durations, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, durations)
		}
	}
	for line := range strings.Lines(ofCalls(t, registry, "mcp_server_active_operations")) {
		if !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, "} 0\n") {
			t.Errorf("after all calls: %s", line)
		}
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("the metrics are not as Prometheus recommends: %v, %v", problems, err)
	}
}

// ofCalls returns a metric in the text format, as a server exposes it.
func ofCalls(t *testing.T, registry prometheus.Gatherer, metric string) string {
	t.Helper()
	text, err := testutil.GatherAndFormat(registry, expfmt.TypeTextPlain, metric)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Clients have metrics of their own, and several connections and muxes share a registry.
func TestShared(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		mux := newMux(mcp.MuxOptions{Lenient: true})
		mux.Use(middleware.Metrics(prommcp.Server(registry), nil))
		c := mcptest.Connect(t, mux)
		c.Use(middleware.Metrics(prommcp.Client(registry), nil))
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: []byte(`{"n":"7"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	for metric, want := range map[string]string{
		"mcp_client_operations_total":       `mcp_client_operations_total{cause="",error_type="",` + add + `,rpc_response_status_code=""} 2`,
		"mcp_server_mended_arguments_total": `mcp_server_mended_arguments_total{gen_ai_tool_name="add",mcp_method_name="tools/call"} 2`,
	} {
		if got := ofCalls(t, registry, metric); !strings.Contains(got, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

// A registry that has another metric of the same name cannot be used.
func TestConflict(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "mcp_server_operations_total"}))
	defer func() {
		if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "prommcp: ") {
			t.Errorf("it panicked with %s", text)
		}
	}()
	prommcp.Server(registry)
}

// The default registry is the one that promhttp.Handler serves.
func TestDefaultRegistry(t *testing.T) {
	prommcp.Client(nil).Count(t.Context(), middleware.MetricRequests, []middleware.Label{{Name: "method", Value: mcp.MethodListTools}}, 1)
	if got := ofCalls(t, prometheus.DefaultGatherer, "mcp_client_operations_total"); !strings.Contains(got, `mcp_method_name="tools/list"`) {
		t.Errorf("got %s", got)
	}
}

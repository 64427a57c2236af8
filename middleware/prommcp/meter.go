// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package prommcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware"
)

// The labels. All but the last are named as in the conventions.
const (
	labelMethod = "mcp_method_name"
	labelTool   = "gen_ai_tool_name"
	labelPrompt = "gen_ai_prompt_name"
	labelError  = "error_type"
	labelCode   = "rpc_response_status_code"
	labelCause  = "cause"
)

// other is what the conventions record for values that are not known.
const other = "_OTHER"

// A Meter records the measurements of [middleware.Metrics] with Prometheus. It is created by
// [Server] or [Client], and is safe for concurrent use.
type Meter struct {
	duration *prometheus.HistogramVec
	requests *prometheus.CounterVec
	inFlight *prometheus.GaugeVec
	mended   *prometheus.CounterVec
}

// Server returns a Meter for the requests that a mux serves. Its metrics are registered with
// registry, or with [prometheus.DefaultRegisterer] if registry is nil. Several muxes with one
// registry share the metrics. Server panics if the registry has other metrics of these names.
func Server(registry prometheus.Registerer) *Meter { return newMeter("server", registry) }

// Client returns a Meter for the requests that connections send. It is otherwise like [Server].
func Client(registry prometheus.Registerer) *Meter { return newMeter("client", registry) }

func newMeter(side string, registry prometheus.Registerer) *Meter {
	if registry == nil {
		registry = prometheus.DefaultRegisterer
	}
	name := func(metric string) string { return "mcp_" + side + "_" + metric }
	return &Meter{
		duration: register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name("operation_duration_seconds"), Help: "How long requests and notifications of MCP took.",
			Buckets: []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300}, // of the conventions
		}, []string{labelMethod, labelTool, labelPrompt, labelError})),
		requests: register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name("operations_total"), Help: "Requests and notifications of MCP.",
		}, []string{labelMethod, labelTool, labelPrompt, labelError, labelCode, labelCause})),
		inFlight: register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: name("active_operations"), Help: "Requests and notifications of MCP in flight.",
		}, []string{labelMethod})),
		mended: register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name("mended_arguments_total"), Help: "Arguments of tools that were changed to fit the schema.",
		}, []string{labelMethod, labelTool})),
	}
}

// register registers a collector, or returns the equal one that is registered already.
func register[C prometheus.Collector](registry prometheus.Registerer, c C) C {
	err := registry.Register(c)
	if err == nil {
		return c
	}
	if registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := registered.ExistingCollector.(C); ok {
			return same
		}
	}
	panic(fmt.Sprintf("prommcp: %v", err))
}

// Count implements [middleware.Meter].
func (m *Meter) Count(_ context.Context, name string, labels []middleware.Label, delta uint64) {
	s := seriesOf(labels)
	switch name {
	case middleware.MetricRequests:
		m.requests.WithLabelValues(s.method, s.tool, s.prompt, s.errorType(s.code), s.code, s.cause).Add(float64(delta))
	case middleware.MetricMended:
		m.mended.WithLabelValues(s.method, s.tool).Add(float64(delta))
	}
}

// Gauge implements [middleware.Meter].
func (m *Meter) Gauge(_ context.Context, name string, labels []middleware.Label, delta int64) {
	if name == middleware.MetricInFlight {
		m.inFlight.WithLabelValues(seriesOf(labels).method).Add(float64(delta))
	}
}

// Observe implements [middleware.Meter].
func (m *Meter) Observe(_ context.Context, name string, labels []middleware.Label, value float64) {
	if name == middleware.MetricDuration {
		s := seriesOf(labels)
		m.duration.WithLabelValues(s.method, s.tool, s.prompt, s.errorType(other)).Observe(value)
	}
}

// A series holds the labels of a measurement.
type series struct{ method, tool, prompt, outcome, code, cause string }

func seriesOf(labels []middleware.Label) series {
	var s series
	name := ""
	for _, l := range labels {
		switch l.Name {
		case "method":
			s.method = known(l.Value)
		case "name":
			name = known(l.Value)
		case "outcome":
			s.outcome = l.Value
		case "code":
			s.code = known(l.Value)
		case "cause":
			s.cause = l.Value
		}
	}
	switch s.method {
	case mcp.MethodCallTool:
		s.tool = name
	case mcp.MethodGetPrompt:
		s.prompt = name
	}
	return s
}

// known translates what [middleware.Metrics] records for an unknown value.
func known(value string) string {
	if value == "other" {
		return other
	}
	return value
}

// errorType returns the label error_type. code is for error responses.
func (s *series) errorType(code string) string {
	switch s.outcome {
	case "ok", "input_required", "":
		return ""
	case "isError", "invalid_arguments":
		return "tool_error"
	case "error":
		return code
	}
	return s.outcome
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware/otelmcp"
)

// w3c is the propagator that programs usually use.
var w3c = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// observed is an OpenTelemetry SDK that stores everything in memory.
type observed struct {
	exporter *tracetest.InMemoryExporter
	traces   *sdktrace.TracerProvider
	reader   *sdkmetric.ManualReader
	meters   *sdkmetric.MeterProvider
}

func observe(t *testing.T) *observed {
	t.Helper()
	o := &observed{exporter: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	o.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(o.exporter))
	o.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader))
	return o
}

func (o *observed) options() *otelmcp.Options {
	return &otelmcp.Options{TracerProvider: o.traces, MeterProvider: o.meters, Propagator: w3c}
}

// spans returns the ended spans and removes them from the exporter.
func (o *observed) spans() tracetest.SpanStubs {
	spans := o.exporter.GetSpans()
	o.exporter.Reset()
	return spans
}

// only returns the only span that has ended.
func (o *observed) only(t *testing.T) tracetest.SpanStub {
	t.Helper()
	spans := o.spans()
	if len(spans) != 1 {
		t.Fatalf("got %d spans, want one", len(spans))
	}
	return spans[0]
}

// points returns the measurements of a histogram, each as "key=value key=value", sorted.
func (o *observed) points(t *testing.T, name string) []string {
	t.Helper()
	var points []string
	for _, p := range o.histogram(t, name) {
		for range p.Count {
			points = append(points, written(p.Attributes.ToSlice()))
		}
	}
	slices.Sort(points)
	return points
}

func (o *observed) histogram(t *testing.T, name string) []metricdata.HistogramDataPoint[float64] {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := o.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	var points []metricdata.HistogramDataPoint[float64]
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				points = append(points, m.Data.(metricdata.Histogram[float64]).DataPoints...)
			}
		}
	}
	return points
}

// written formats attributes as "key=value key=value", sorted.
func written(attrs []attribute.KeyValue) string {
	pairs := make([]string, len(attrs))
	for i, a := range attrs {
		pairs[i] = string(a.Key) + "=" + a.Value.String()
	}
	slices.Sort(pairs)
	return strings.Join(pairs, " ")
}

// quiet returns the options of a mux that logs nothing.
func quiet() *mcp.MuxOptions {
	return &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)}
}

func answering(res mcp.Result, err error) mcp.Handler {
	return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return res, err })
}

func call(name string) *mcp.Request { return callWith(name, nil) }

func callWith(name string, meta map[string]string) *mcp.Request {
	p := &mcp.CallToolParams{Name: name}
	for key, value := range meta {
		p.Meta.Set(key, value)
	}
	return mcptest.NewRequest(mcp.MethodCallTool, p)
}

// keeping is a handler that stores the request and its context.
type keeping struct {
	ctx context.Context
	req *mcp.Request
}

func (k *keeping) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	k.ctx, k.req = ctx, req
	return mcp.TextResult(""), nil
}

// Traces from other processes.
const (
	traceA  = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanA   = "00f067aa0ba902b7"
	parentA = "00-" + traceA + "-" + spanA + "-01"
	traceB  = "5bf92f3577b34da6a3ce929d0e0e4736"
	spanB   = "10f067aa0ba902b7"
	parentB = "00-" + traceB + "-" + spanB + "-01"
)

// begun returns a context with a span of this process.
func (o *observed) begun(t *testing.T) (context.Context, trace.SpanContext) {
	t.Helper()
	ctx, span := o.traces.Tracer("test").Start(t.Context(), "ambient")
	t.Cleanup(func() { span.End() })
	return ctx, span.SpanContext()
}

// checkSpan compares a span with the expected one. Attributes and status are in the format
// of written and statusOf.
func checkSpan(t *testing.T, got tracetest.SpanStub, kind trace.SpanKind, name, attrs, status string) {
	t.Helper()
	if got.Name != name || got.SpanKind != kind {
		t.Errorf("the span is %s of kind %s, want %s of kind %s", got.Name, got.SpanKind, name, kind)
	}
	if a := written(got.Attributes); a != attrs {
		t.Errorf("the attributes are\n%s, want\n%s", a, attrs)
	}
	if s := statusOf(got); s != status {
		t.Errorf("the status is %q, want %q", s, status)
	}
}

func statusOf(s tracetest.SpanStub) string {
	if s.Status.Code == codes.Unset {
		return ""
	}
	return strings.TrimSpace(strings.ToLower(s.Status.Code.String()) + " " + s.Status.Description)
}

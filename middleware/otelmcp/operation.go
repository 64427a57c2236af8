// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/mcp"
)

// settling is how long the span of a subscription lasts at most.
const settling = time.Second

// telemetry is what the operations of one middleware share.
type telemetry struct {
	opts     Options
	kind     trace.SpanKind
	tracer   trace.Tracer
	duration metric.Float64Histogram
	sessions metric.Float64Histogram
	names    *names
}

func newTelemetry(kind trace.SpanKind, opts *Options) *telemetry {
	o := settled(opts)
	t := &telemetry{opts: o, kind: kind, tracer: o.TracerProvider.Tracer(scope), names: newNames(o.Methods, o.MaxNames)}
	meter := o.MeterProvider.Meter(scope)
	if kind == trace.SpanKindServer {
		t.duration = histogram(meter, "mcp.server.operation.duration", "How long it took to answer a request, or to take a notification.")
		t.sessions = histogram(meter, "mcp.server.session.duration", "How long a session lasted, as the server saw it.")
	} else {
		t.duration = histogram(meter, "mcp.client.operation.duration", "How long it took until a request was answered, or a notification sent.")
		t.sessions = histogram(meter, "mcp.client.session.duration", "How long a session lasted, as the client saw it.")
	}
	return t
}

func histogram(meter metric.Meter, name, description string) metric.Float64Histogram {
	h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300))
	if err != nil {
		otel.Handle(err)
		return noop.Float64Histogram{}
	}
	return h
}

// operation is one request, as its span and its measurement see it.
type operation struct {
	t     *telemetry
	ctx   context.Context // with the span
	req   *mcp.Request
	span  trace.Span
	begun time.Time
	over  atomic.Bool
}

func (t *telemetry) begin(ctx context.Context, req *mcp.Request, links []trace.Link) *operation {
	op := &operation{t: t, req: req, begun: time.Now()}
	op.ctx, op.span = t.tracer.Start(ctx, t.names.span(req), //nolint:spancheck // run ends it
		trace.WithSpanKind(t.kind), trace.WithLinks(links...), trace.WithAttributes(t.spanAttributes(ctx, req)...))
	return op
}

// run has next serve the request, which may be another than that of the span, and
// ends the operation. A panic goes on to whoever recovers it.
func (op *operation) run(next mcp.Handler, req *mcp.Request) (res mcp.Result, err error) {
	if req.Method == mcp.MethodListen {
		defer time.AfterFunc(settling, op.settle).Stop()
	}
	returned := false
	defer func() {
		if !returned {
			op.end(panicked)
		} else {
			op.end(outcomeOf(op.ctx, op.t.kind, res, err))
		}
	}()
	res, err = next.ServeMCP(op.ctx, req)
	returned = true
	return res, err
}

// settle ends the span of a subscription that stands.
func (op *operation) settle() {
	if op.over.CompareAndSwap(false, true) {
		op.span.End()
	}
}

func (op *operation) end(o outcome) {
	if !op.over.CompareAndSwap(false, true) {
		return
	}
	took := time.Since(op.begun)
	if o.reached && op.t.names.learn(op.req) {
		op.span.SetName(op.t.names.span(op.req))
	}
	if o.kind != "" {
		op.span.SetStatus(codes.Error, clipped(o.text))
		op.span.SetAttributes(o.attributes()...)
	}
	op.span.End()
	if !op.t.duration.Enabled(op.ctx) {
		return
	}
	op.t.duration.Record(op.ctx, took.Seconds(), metric.WithAttributes(op.t.measureAttributes(op.req, o)...))
}

// attributes are error.type and the code.
func (o outcome) attributes() []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 2)
	if o.kind != "" {
		attrs = append(attrs, keyErrorType.String(o.kind))
	}
	if o.code != "" {
		attrs = append(attrs, keyStatusCode.String(o.code))
	}
	return attrs
}

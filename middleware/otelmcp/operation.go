// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// maxListenSpan is the maximum duration of the span of a subscription.
const maxListenSpan = time.Second

// telemetry holds what the operations of one middleware share.
type telemetry struct {
	opts     Options
	kind     trace.SpanKind
	tracer   trace.Tracer
	duration metric.Float64Histogram
	sessions metric.Float64Histogram
	mended   metric.Int64Counter // nil on clients
	names    *names
}

func newTelemetry(kind trace.SpanKind, opts *Options) *telemetry {
	o := withDefaults(opts)
	t := &telemetry{opts: o, kind: kind, tracer: o.TracerProvider.Tracer(scope), names: &names{known: map[target]bool{}}}
	meter := o.MeterProvider.Meter(scope)
	if kind == trace.SpanKindServer {
		t.duration = histogram(meter, "mcp.server.operation.duration", "How long it took to answer a request, or to take a notification.")
		t.sessions = histogram(meter, "mcp.server.session.duration", "How long a session lasted, as the server saw it.")
		t.mended = counter(meter, "mcp.server.mended_arguments", "How many arguments of tools a lenient mux has changed to fit the schema.")
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

func counter(meter metric.Meter, name, description string) metric.Int64Counter {
	c, err := meter.Int64Counter(name, metric.WithUnit("{argument}"), metric.WithDescription(description))
	if err != nil {
		otel.Handle(err)
		return noop.Int64Counter{}
	}
	return c
}

// An operation is one request with its span and its measurement.
type operation struct {
	t     *telemetry
	ctx   context.Context // with the span
	req   *mcp.Request
	span  trace.Span
	name  string // of the span
	start time.Time
	ended atomic.Bool
}

func (t *telemetry) startOperation(ctx context.Context, req *mcp.Request, links []trace.Link) *operation {
	op := &operation{t: t, req: req, name: t.names.spanName(req), start: time.Now()}
	op.ctx, op.span = t.tracer.Start(ctx, op.name, //nolint:spancheck // run ends it
		trace.WithSpanKind(t.kind), trace.WithLinks(links...), trace.WithAttributes(t.spanAttributes(ctx, req)...))
	return op
}

// run passes req, which may differ from the request of the span, to next and finishes the
// operation. If next panics, run records the panic, which then continues.
func (op *operation) run(next mcp.Handler, req *mcp.Request) (res mcp.Result, err error) {
	if req.Method == mcp.MethodListen {
		defer time.AfterFunc(maxListenSpan, op.endSpan).Stop()
	}
	returned := false
	defer func() {
		if !returned {
			op.finish(panicked)
		} else {
			o := outcomeOf(op.ctx, op.t.kind, res, err)
			op.recordMended(res, o)
			op.finish(o)
		}
	}()
	res, err = next.ServeMCP(op.ctx, req)
	returned = true
	return res, err
}

// endSpan ends the span of a subscription that is still open.
func (op *operation) endSpan() {
	if op.ended.CompareAndSwap(false, true) {
		op.span.End()
	}
}

// recordMended records how many arguments of a tool call were changed to fit the schema.
func (op *operation) recordMended(res mcp.Result, o outcome) {
	tool, ok := res.(*mcp.CallToolResult)
	if !ok || op.t.kind != trace.SpanKindServer || len(tool.Mended()) == 0 {
		return
	}
	n := len(tool.Mended())
	op.span.SetAttributes(keyMended.Int(n))
	if op.t.names.learn(op.req); op.t.mended.Enabled(op.ctx) {
		op.t.mended.Add(op.ctx, int64(n), metric.WithAttributes(op.t.measureAttributes(op.req, o)...))
	}
}

func (op *operation) finish(o outcome) {
	if !op.ended.CompareAndSwap(false, true) {
		return
	}
	took := time.Since(op.start)
	if o.reached || op.req.IsRouted() {
		op.t.names.learn(op.req)
	}
	if name := op.t.names.spanName(op.req); name != op.name { // it became known in the meantime
		op.span.SetName(name)
	}
	if o.kind != "" {
		op.span.SetStatus(codes.Error, clip(publicText(op.req, o.text)))
		op.span.SetAttributes(o.attributes()...)
	}
	op.span.End()
	if !op.t.duration.Enabled(op.ctx) {
		return
	}
	op.t.duration.Record(op.ctx, took.Seconds(), metric.WithAttributes(op.t.measureAttributes(op.req, o)...))
}

// attributes returns the error type and the status code, if any.
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

// An outcome is how an operation ended.
type outcome struct {
	kind    string // error.type; "" for success
	code    string // of the error response; "" if there is none
	text    string // for the span's status
	reached bool   // the name of the request is known to exist
}

// panicked is the outcome of a handler that did not return. The caller gets an internal
// error.
var panicked = outcome{kind: "panic", code: strconv.Itoa(mcp.CodeInternalError), reached: true}

func outcomeOf(ctx context.Context, kind trace.SpanKind, res mcp.Result, err error) outcome {
	tool, _ := res.(*mcp.CallToolResult)
	failed := err != nil || tool != nil && tool.IsError
	coded, isCoded := errors.AsType[*mcp.Error](err)
	switch {
	case !failed:
		return outcome{reached: true}
	case ctx.Err() != nil:
		return outcome{kind: contextKind(ctx.Err())}
	case err == nil:
		return outcome{kind: "tool_error", text: textOf(tool.Err()), reached: true}
	case isCoded && (kind == trace.SpanKindClient || coded.Code != mcp.CodeInternalError):
		code := strconv.Itoa(coded.Code)
		return outcome{kind: code, code: code, text: coded.Message, reached: coded.Code == mcp.CodeInternalError}
	case kind == trace.SpanKindClient:
		return outcome{kind: wireError(err)} // the text may contain parts of a URL
	}
	code := strconv.Itoa(mcp.CodeOf(err))
	return outcome{kind: code, code: code, text: err.Error(), reached: true}
}

// textOf returns the text of the error of a failed tool. The text of invalid arguments is
// omitted, because it contains argument values.
func textOf(err error) string {
	if _, invalid := errors.AsType[*mcp.ArgumentsError](err); invalid {
		return "invalid arguments"
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

func contextKind(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	return "cancelled"
}

// wireError returns the error.type of an error that is not an error response, or "" for
// nil.
func wireError(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, mcp.ErrUnauthorized):
		return "unauthorized"
	case errors.Is(err, mcp.ErrSessionLost):
		return "session_lost"
	case errors.Is(err, transport.ErrNotUnderstood):
		return "not_understood"
	case errors.Is(err, mcp.ErrClosed):
		return "closed"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return contextKind(err)
	}
	return other
}

// withKnownCode replaces an unknown code, because peers can choose codes.
func (o outcome) withKnownCode() outcome {
	if o.code == "" {
		return o
	}
	code, err := strconv.Atoi(o.code)
	if err == nil && mcp.CodeName(code) != "" {
		return o
	}
	return outcome{kind: other, code: other}
}

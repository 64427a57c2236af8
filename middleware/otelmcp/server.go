// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/mcp"
)

// Server traces and measures what a handler is asked: a mux, by [mcp.Mux.Use], or
// any other Handler. It belongs outermost, outside of what refuses requests, and on
// the mux that is served; what is mounted there may have one as well, whose spans
// are children of those of the mux.
//
// The parent of a span is what the request's _meta says (traceparent, tracestate,
// baggage), with a link to the span that the context has already, such as that of an
// HTTP instrumentation. If _meta says nothing, the parent is the context's span, and
// if there is none, what the HTTP header says. The handler's context has the span and
// the baggage.
//
// Opts may be nil. The Middleware may be used in several places; they share the
// names that are known.
func Server(opts *Options) mcp.Middleware {
	t := newTelemetry(trace.SpanKindServer, opts)
	sessions := newSessions(t)
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			sessions.saw(ctx, req)
			ctx, links := t.received(ctx, req)
			op := t.begin(context.WithValue(ctx, servingKey{}, true), req, links)
			return op.run(next, req)
		})
	}
}

// servingKey marks contexts whose span comes from within the server: it is nearer
// than what _meta says, which stays the same from mux to mounted mux.
type servingKey struct{}

// received is the context in which the span of a request begins, and what it is
// linked to.
func (t *telemetry) received(ctx context.Context, req *mcp.Request) (context.Context, []trace.Link) {
	ambient := trace.SpanContextFromContext(ctx)
	if ambient.IsValid() && ctx.Value(servingKey{}) != nil {
		return ctx, nil
	}
	if t.opts.Public {
		return ctx, linkTo(trace.SpanContextFromContext(t.extract(context.Background(), req, true)), ambient)
	}
	extracted := t.extract(ctx, req, !ambient.IsValid())
	return extracted, linkTo(ambient, trace.SpanContextFromContext(extracted))
}

// extract is ctx with what _meta carries and, where that has nothing and header
// says so, with what the HTTP header does.
func (t *telemetry) extract(ctx context.Context, req *mcp.Request, header bool) context.Context {
	if header && req.Header != nil {
		ctx = t.opts.Propagator.Extract(ctx, propagation.HeaderCarrier(req.Header))
	}
	return t.opts.Propagator.Extract(ctx, &metaCarrier{req: req})
}

// linkTo is a link to a span that is not the parent already.
func linkTo(span, parent trace.SpanContext) []trace.Link {
	if !span.IsValid() || span.TraceID() == parent.TraceID() && span.SpanID() == parent.SpanID() {
		return nil
	}
	return []trace.Link{{SpanContext: span}}
}

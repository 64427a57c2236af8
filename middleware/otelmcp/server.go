// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"context"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/mcp"
)

// Server traces and measures the requests to a handler: to a mux, with [mcp.Mux.Use], or to
// any other Handler. Use it outermost, outside middleware that rejects requests, on the mux
// that is served. A mounted mux may use its own Server, whose spans are children of the
// spans of the outer mux.
//
// The parent of a span is the span in the request's _meta (traceparent, tracestate,
// baggage), with a link to the span of the context, such as the span of an HTTP
// instrumentation. If _meta has none, the parent is the span of the context or, if there is
// none, the span in the HTTP header. The context of the handler has the span and the
// baggage.
//
// opts may be nil. The Middleware may be used in several places, which then share the known
// names.
func Server(opts *Options) mcp.Middleware {
	t := newTelemetry(trace.SpanKindServer, opts)
	sessions := newSessions(t)
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			sessions.track(ctx, req)
			ctx, links := t.parentOf(ctx, req)
			op := t.startOperation(context.WithValue(ctx, servingKey{}, true), req, links)
			return op.run(next, req)
		})
	}
}

// servingKey marks contexts whose span was started in this server. That span takes
// precedence over _meta, which is the same in a mux and in a mux mounted on it.
type servingKey struct{}

// parentOf returns a context with the parent of a request's span, and the links of the
// span.
func (t *telemetry) parentOf(ctx context.Context, req *mcp.Request) (context.Context, []trace.Link) {
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

// extract adds to ctx the trace in _meta or, if _meta has none and header is set, the trace
// in the HTTP header.
func (t *telemetry) extract(ctx context.Context, req *mcp.Request, header bool) context.Context {
	if header && req.Header != nil {
		ctx = t.opts.Propagator.Extract(ctx, propagation.HeaderCarrier(req.Header))
	}
	return t.opts.Propagator.Extract(ctx, &metaCarrier{req: req})
}

// linkTo returns a link to a span, unless it is the parent.
func linkTo(span, parent trace.SpanContext) []trace.Link {
	if !span.IsValid() || span.TraceID() == parent.TraceID() && span.SpanID() == parent.SpanID() {
		return nil
	}
	return []trace.Link{{SpanContext: span}}
}

// A metaCarrier reads trace members in the _meta of a request. It decodes _meta only if a
// propagator reads it.
type metaCarrier struct {
	req  *mcp.Request
	meta mcp.Meta
	read bool
}

var _ propagation.TextMapCarrier = (*metaCarrier)(nil)

// Get implements [propagation.TextMapCarrier].
func (c *metaCarrier) Get(key string) string {
	var value string
	if !c.decoded().Get(key, &value) {
		return ""
	}
	return value
}

// Keys implements [propagation.TextMapCarrier].
func (c *metaCarrier) Keys() []string { return slices.Sorted(maps.Keys(c.decoded())) }

// Set implements [propagation.TextMapCarrier]. It does nothing.
func (c *metaCarrier) Set(string, string) {}

func (c *metaCarrier) decoded() mcp.Meta {
	if !c.read {
		c.meta, c.read = c.req.Meta(), true
	}
	return c.meta
}

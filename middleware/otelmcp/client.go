// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/mcp"
)

// Client traces and measures the requests that a connection sends; pass it to [mcp.Conn.Use].
// Use it last, so that it is innermost: then a cached result has no span, and a retried request
// has one for each attempt. Outside a middleware that merges equal requests, it would make them
// differ, because each request has its own trace. The handshake is over before Use can be
// called: to trace it, too, pass the middleware in [mcp.ClientOptions].Middleware instead,
// which is outside that of Use.
//
// Client writes the trace and the baggage of the context to the request's _meta. It keeps
// other members, including trace members for which the context has no value, except the
// tracestate of a traceparent that it replaces. If the context has no span, the trace in
// _meta continues, so that a gateway does not break a trace even if its own server is not
// traced.
//
// opts may be nil. The Middleware may be used on several connections, which then share the
// known names.
func Client(opts *Options) mcp.Middleware { return newTelemetry(trace.SpanKindClient, opts).client }

// Instrument uses [Client] on a connection, with its protocol version as an attribute, and
// measures how long the connection lasts. It starts a goroutine that ends with the
// connection. Call it once per connection, after calling [mcp.Conn.Use] for all other
// middleware. opts may be nil.
func Instrument(conn *mcp.Conn, opts *Options) {
	t := newTelemetry(trace.SpanKindClient, opts)
	t.opts.Attributes = append([]attribute.KeyValue{keyProtocolVersion.String(conn.Version())}, t.opts.Attributes...)
	conn.Use(t.client)
	session := t.startSession()
	go func() { // until the connection ends
		<-conn.Done()
		session.record(wireError(conn.Err()))
	}()
}

func (t *telemetry) client(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if !trace.SpanContextFromContext(ctx).IsValid() {
			ctx = t.extract(ctx, req, false)
		}
		op := t.startOperation(ctx, req, nil)
		return op.run(next, t.inject(op.ctx, req))
	})
}

// inject returns a request that carries the trace of ctx. If the params are malformed, it
// returns req unchanged, for the server to reject.
func (t *telemetry) inject(ctx context.Context, req *mcp.Request) *mcp.Request {
	carried := propagation.MapCarrier{}
	t.opts.Propagator.Inject(ctx, carried)
	if len(carried) == 0 {
		return req
	}
	var params struct {
		Meta mcp.Meta  `json:"_meta"`
		Rest mcp.Extra `json:",inline,embed"`
	}
	if req.Decode(&params) != nil {
		return req
	}
	if carried["traceparent"] != "" {
		delete(params.Meta, "tracestate") // it belongs to the replaced traceparent
	}
	for key, value := range carried {
		params.Meta.Set(key, value)
	}
	carrying, err := req.WithParams(&params)
	if err != nil {
		return req
	}
	return carrying
}

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

// Client traces and measures what a connection sends, by [mcp.Conn.Use]. It belongs
// innermost, so it is used last: what a cache answers has no span then, and what is
// sent twice has two. Outside of a middleware that joins equal requests, it would
// make each of them another, with a trace of its own. The handshake is over before a
// connection can be given any.
//
// It writes the trace and the baggage of the context to the request's _meta. Other
// members stay, and so do these where the context has none of their kind. A context
// without a span goes on with the trace in _meta, so that a gateway whose server is
// not traced does not break one.
//
// Opts may be nil. The Middleware may be used on several connections; they share the
// names that are known.
func Client(opts *Options) mcp.Middleware { return newTelemetry(trace.SpanKindClient, opts).client }

// Instrument uses [Client] on a connection, with its protocol version as an attribute,
// and measures how long the connection lasts. Its goroutine ends with the connection.
// It is called once for a connection, after [mcp.Conn.Use] for everything else. Opts may be
// nil.
func Instrument(conn *mcp.Conn, opts *Options) {
	t := newTelemetry(trace.SpanKindClient, opts)
	t.opts.Attributes = append([]attribute.KeyValue{keyProtocolVersion.String(conn.Version())}, t.opts.Attributes...)
	conn.Use(t.client)
	session := t.session()
	go func() {
		<-conn.Done()
		session.end(wireError(conn.Err()))
	}()
}

func (t *telemetry) client(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if !trace.SpanContextFromContext(ctx).IsValid() {
			ctx = t.extract(ctx, req, false)
		}
		op := t.begin(ctx, req, nil)
		return op.run(next, t.inject(op.ctx, req))
	})
}

// inject is a request that carries the trace of ctx. Telemetry is no reason to fail:
// if anything is wrong with the params, they stay as they are for others to refuse.
func (t *telemetry) inject(ctx context.Context, req *mcp.Request) *mcp.Request {
	carried := propagation.MapCarrier{}
	t.opts.Propagator.Inject(ctx, carried)
	if len(carried) == 0 {
		return req
	}
	var params struct {
		Meta mcp.Meta  `json:"_meta"`
		Rest mcp.Extra `json:",embed"`
	}
	if req.Decode(&params) != nil {
		return req
	}
	if carried["traceparent"] != "" {
		delete(params.Meta, "tracestate") // it belongs to the traceparent that goes
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware/otelmcp"
)

func outgoing(t *testing.T, method string, params any) *mcp.Request {
	t.Helper()
	req, err := mcp.NewRequest(method, params)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestClientSpans(t *testing.T) {
	tool := "gen_ai.operation.name=execute_tool gen_ai.tool.name=t mcp.method.name=tools/call"
	for name, test := range map[string]struct {
		res    mcp.Result
		err    error
		span   string
		attrs  string
		status string
	}{
		"ok":           {mcp.TextResult(""), nil, "tools/call t", tool, ""},
		"tool error":   {&mcp.CallToolResult{Content: mcp.Contents{mcp.Text("secret")}, IsError: true}, nil, "tools/call t", "error.type=tool_error " + tool, "error"},
		"refused":      {nil, mcp.NewUnknownNameError("tool", "t"), "tools/call", "error.type=-32602 " + tool + " rpc.response.status_code=-32602", `error unknown tool "t"`},
		"unauthorized": {nil, fmt.Errorf("wrapped: %w", mcp.ErrUnauthorized), "tools/call", "error.type=unauthorized " + tool, "error"},
		"closed":       {nil, mcp.ErrClosed, "tools/call", "error.type=closed " + tool, "error"},
		"lost":         {nil, mcp.ErrSessionLost, "tools/call", "error.type=session_lost " + tool, "error"},
		"strange":      {nil, transport.ErrNotUnderstood, "tools/call", "error.type=not_understood " + tool, "error"},
		"timeout":      {nil, context.DeadlineExceeded, "tools/call", "error.type=timeout " + tool, "error"},
		"network":      {nil, errors.New("dial https://host/?token=secret"), "tools/call", "error.type=_OTHER " + tool, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t)
			h := otelmcp.Client(o.options())(answering(test.res, test.err))
			res, err := h.ServeMCP(t.Context(), outgoing(t, mcp.MethodCallTool, &mcp.CallToolParams{Name: "t"}))
			if res != test.res || !errors.Is(err, test.err) {
				t.Errorf("the outcome became %v, %v", res, err)
			}
			checkSpan(t, o.only(t), trace.SpanKindClient, test.span, test.attrs, test.status)
			if points := o.points(t, clientDuration); len(points) != 1 {
				t.Errorf("measured %q", points)
			}
		})
	}
}

// The trace is added to requests, and everything else is preserved.
func TestClientInjects(t *testing.T) {
	const big = "9007199254740993"
	who, _ := baggage.Parse("who=me")
	for name, test := range map[string]struct {
		params     string
		ambient    bool
		baggage    bool
		propagator propagation.TextMapPropagator
		want       string // <new> stands for the client's span
		trace      string // "" means any
	}{
		"no params": {want: `{"_meta":{"traceparent":"<new>"}}`},
		"no meta":   {params: `{"name":"t"}`, want: `{"_meta":{"traceparent":"<new>"},"name":"t"}`},
		"other members": {
			params: `{"name":"t","vendor":{"b":` + big + `,"a":1},"_meta":{"example.com/x":` + big + `,"progressToken":7}}`,
			want:   `{"_meta":{"example.com/x":` + big + `,"progressToken":7,"traceparent":"<new>"},"name":"t","vendor":{"b":` + big + `,"a":1}}`,
		},
		"a trace that goes on": {
			params: `{"_meta":{"traceparent":"` + parentA + `","tracestate":"a=b","baggage":"who=else"}}`, trace: traceA,
			want: `{"_meta":{"baggage":"who=else","traceparent":"<new>","tracestate":"a=b"}}`,
		},
		"a trace that is replaced": {
			params: `{"_meta":{"traceparent":"` + parentA + `","tracestate":"a=b","baggage":"who=else"}}`, ambient: true,
			want: `{"_meta":{"baggage":"who=else","traceparent":"<new>"}}`,
		},
		"baggage": {
			params: `{"_meta":{"baggage":"who=else"}}`, ambient: true, baggage: true,
			want: `{"_meta":{"baggage":"who=me","traceparent":"<new>"}}`,
		},
		"no propagation": {
			params: `{ "_meta": {"traceparent":"` + parentA + `"} }`, propagator: propagation.NewCompositeTextMapPropagator(),
			want: `{ "_meta": {"traceparent":"` + parentA + `"} }`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t)
			opts := o.options()
			if test.propagator != nil {
				opts.Propagator = test.propagator
			}
			ctx := t.Context()
			if test.ambient {
				var ambient trace.SpanContext
				ctx, ambient = o.begun(t)
				test.trace = ambient.TraceID().String()
			}
			if test.baggage {
				ctx = baggage.ContextWithBaggage(ctx, who)
			}
			var params any
			if test.params != "" {
				params = json.RawMessage(test.params)
			}
			req := outgoing(t, mcp.MethodCallTool, params)
			k := new(keeping)
			_, _ = otelmcp.Client(opts)(k).ServeMCP(ctx, req)
			span := o.only(t).SpanContext
			parent := "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-01"
			if want := strings.ReplaceAll(test.want, "<new>", parent); string(k.req.Params()) != want {
				t.Errorf("sent\n%s, want\n%s", k.req.Params(), want)
			}
			if test.trace != "" && test.trace != span.TraceID().String() {
				t.Errorf("the trace is %s, want %s", span.TraceID(), test.trace)
			}
			if string(req.Params()) != test.params {
				t.Errorf("the request became %s", req.Params())
			}
		})
	}
}

// A decision not to sample is propagated, too.
func TestClientNotSampled(t *testing.T) {
	o := observe(t)
	opts := o.options()
	opts.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(o.exporter), sdktrace.WithSampler(sdktrace.NeverSample()))
	k := new(keeping)
	_, _ = otelmcp.Client(opts)(otelmcp.Server(opts)(k)).ServeMCP(t.Context(), call("t"))
	var parent string
	if k.req.Meta().Get("traceparent", &parent); !strings.HasSuffix(parent, "-00") || len(o.spans()) != 0 {
		t.Errorf("sent %q", parent)
	}
	if got := trace.SpanContextFromContext(k.ctx).TraceID().String(); !strings.Contains(parent, got) {
		t.Errorf("the handler is in the trace %s", got)
	}
}

// Without options, OpenTelemetry's global providers are used, which do nothing by default.
func TestDefaults(t *testing.T) {
	k := new(keeping)
	req := callWith("t", map[string]string{"traceparent": parentA})
	_, err := otelmcp.Client(nil)(otelmcp.Server(nil)(k)).ServeMCP(t.Context(), req)
	if err != nil || string(k.req.Params()) != string(req.Params()) {
		t.Errorf("got %v, %v", k.req, err)
	}
}

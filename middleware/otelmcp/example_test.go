// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware/otelmcp"
)

// Here, client and server are in one process, and the spans stay in memory.
func Example() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter()
	opts := &otelmcp.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		Propagator:     propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
	}

	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Use(otelmcp.Server(opts))
	mux.Tool("greet", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))

	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	otelmcp.Instrument(conn, opts)

	spans.Reset() // the spans of connecting
	if _, err := mcp.Call[string](ctx, conn, "greet", nil); err != nil {
		fmt.Println(err)
		return
	}
	of := spans.GetSpans()
	for _, s := range of {
		fmt.Println(s.SpanKind, s.Name)
	}
	fmt.Println("the client's is the parent:", of[0].Parent.SpanID() == of[1].SpanContext.SpanID())
	// Output:
	// server tools/call greet
	// client tools/call greet
	// the client's is the parent: true
}

func ExampleServer() {
	spans := tracetest.NewInMemoryExporter()
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Use(otelmcp.Server(&otelmcp.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		// The server is used over standard input and output.
		Attributes: []attribute.KeyValue{attribute.String("network.transport", "pipe")},
	}))
	mux.Tool("greet", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	req, err := mcp.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "made up"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = mux.ServeMCP(context.Background(), req)
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, s.Status.Description)
		for _, a := range s.Attributes {
			fmt.Println(a.Key, a.Value.String())
		}
	}
	// Output:
	// tools/call unknown tool "made up"
	// mcp.method.name tools/call
	// gen_ai.operation.name execute_tool
	// gen_ai.tool.name made up
	// network.transport pipe
	// error.type -32602
	// rpc.response.status_code -32602
}

func ExampleClient() {
	send := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var parent string
		fmt.Println("traced:", req.Meta().Get("traceparent", &parent))
		return &mcp.EmptyResult{}, nil
	})
	opts := &otelmcp.Options{TracerProvider: sdktrace.NewTracerProvider(), Propagator: propagation.TraceContext{}}
	req, err := mcp.NewRequest("vendor/refresh", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = otelmcp.Client(opts)(send).ServeMCP(context.Background(), req)
	fmt.Println(err)
	// Output:
	// traced: true
	// <nil>
}

func ExampleInstrument() {
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mcp.NewMux("empty", "v1.0.0", nil)))
	if err != nil {
		fmt.Println(err)
		return
	}
	otelmcp.Instrument(conn, nil) // OpenTelemetry's own providers, which the program sets
	fmt.Println(conn.Close())
	// Output: <nil>
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware/otelmcp"
)

// traced returns a server with a tool that returns the baggage and a tool that asks for a
// name.
func traced(o *observed) *mcp.Mux {
	mux := mcp.NewMux("server", "v1", quiet())
	mux.Use(otelmcp.Server(o.options()))
	mux.Tool("who", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return baggage.FromContext(ctx).Member("who").Value(), nil
	}, nil))
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		answer, err := mcp.Elicit[named](ctx, "name", "Your name?")
		return answer.Name, err
	}, nil))
	mux.Resource("test://doc", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "text", nil }, nil))
	return mux
}

type named struct {
	Name string `json:"name"`
}

func answers(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return mcptest.Accept(named{"Ada"}), nil
}

// program returns the context of a program with a span and baggage.
func program(t *testing.T, o *observed) (context.Context, trace.SpanContext) {
	t.Helper()
	ctx, span := o.begun(t)
	who, err := baggage.Parse("who=ada")
	if err != nil {
		t.Fatal(err)
	}
	return baggage.ContextWithBaggage(ctx, who), span
}

// Client and server share one trace, in every era and over every transport.
func TestTrace(t *testing.T) {
	o := observe(t)
	(&mcptest.Client{Options: mcp.ClientOptions{Elicit: answers}}).Run(t, traced(o), func(t *testing.T, c *mcp.Conn) {
		otelmcp.Instrument(c, o.options())
		ctx, root := program(t, o)
		if got, err := mcp.Call[string](ctx, c, "who", nil); err != nil || got != "ada" {
			t.Errorf("the baggage is %q, %v", got, err)
		}
		chain(t, o.spans(), root, "tools/call who client", "tools/call who server")
		if _, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://doc"}); err != nil {
			t.Error(err)
		}
		spans := within(o.spans(), root)
		chain(t, spans, root, "resources/read client", "resources/read server")
		for _, s := range spans {
			want := "mcp.protocol.version=" + c.Version() + " mcp.resource.uri=test://doc"
			if attrs := written(s.Attributes); !strings.Contains(attrs, want) {
				t.Errorf("%s has %s, want %s", s.SpanKind, attrs, want)
			}
		}
		if _, err := c.ListTools(ctx, nil); err != nil {
			t.Error(err)
		}
		chain(t, o.spans(), root, "tools/list client", "tools/list server")
		if _, err := mcp.Call[string](ctx, c, "none", nil); err == nil {
			t.Error("an unknown tool answered")
		}
		chain(t, o.spans(), root, "tools/call client", "tools/call server")
	})
}

// within returns the spans of a trace. Requests that connections send on their own have
// other traces.
func within(spans tracetest.SpanStubs, root trace.SpanContext) tracetest.SpanStubs {
	return slices.DeleteFunc(spans, func(s tracetest.SpanStub) bool { return s.SpanContext.TraceID() != root.TraceID() })
}

// chain checks that the first span is a child of root, that each span is a child of the
// previous one, and that the trace has no other spans.
func chain(t *testing.T, spans tracetest.SpanStubs, root trace.SpanContext, want ...string) {
	t.Helper()
	spans = within(spans, root)
	parent := root
	var got []string
	for range spans {
		i := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Parent.SpanID() == parent.SpanID() })
		if i < 0 {
			break
		}
		parent = spans[i].SpanContext
		got = append(got, spans[i].Name+" "+spans[i].SpanKind.String())
	}
	if len(spans) != len(want) || !slices.Equal(got, want) {
		t.Errorf("of %d spans the trace is\n%q, want\n%q", len(spans), got, want)
	}
}

// A call that asks a question has one span on the client, and one on the server for each
// round.
func TestTraceOfQuestions(t *testing.T) {
	o := observe(t)
	(&mcptest.Client{Options: mcp.ClientOptions{Elicit: answers}}).Run(t, traced(o), func(t *testing.T, c *mcp.Conn) {
		c.Use(otelmcp.Client(o.options()))
		ctx, root := program(t, o)
		if got, err := mcp.Call[string](ctx, c, "ask", nil); err != nil || got != "Ada" {
			t.Fatalf("got %q, %v", got, err)
		}
		spans := within(o.spans(), root)
		if len(spans) != 3 || spans[2].SpanKind != trace.SpanKindClient {
			t.Fatalf("got %d spans", len(spans))
		}
		for _, s := range spans {
			if s.Name != "tools/call ask" && s.Name != "tools/call" || statusOf(s) != "" {
				t.Errorf("got %s, %s", s.Name, statusOf(s))
			}
		}
		for _, s := range spans[:2] {
			if s.Parent.SpanID() != spans[2].SpanContext.SpanID() {
				t.Errorf("%s has the parent %s", s.Name, s.Parent.SpanID())
			}
		}
	})
}

// Client, gateway and server share one trace, on every path and in every era.
func TestTraceOfGateway(t *testing.T) {
	o := observe(t)
	server := traced(o)
	onEveryPath(t, func(t *testing.T, backPath mcptest.Path, backVersion string) {
		mcptest.NoLeaks(t)
		gateway := mcp.NewMux("gateway", "v1", quiet())
		gateway.Use(otelmcp.Server(o.options()))
		gateway.Mount("b_", back(t, backPath.Serve(t, server), backVersion, otelmcp.Client(o.options())))
		onEveryPath(t, func(t *testing.T, path mcptest.Path, version string) {
			c := mcptest.Dial(t, path.Serve(t, gateway), &mcp.ClientOptions{Version: version})
			c.Use(otelmcp.Client(o.options()))
			ctx, root := program(t, o)
			if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "b_who"}); err != nil {
				t.Error(err)
			}
			chain(t, o.spans(), root, "tools/call b_who client", "tools/call b_who server", "tools/call who client", "tools/call who server")
		})
	})
}

// onEveryPath calls fn for every path and era.
func onEveryPath(t *testing.T, fn func(t *testing.T, path mcptest.Path, version string)) {
	t.Helper()
	for _, path := range mcptest.Paths() {
		for _, version := range path.Versions() {
			t.Run(version+"/"+path.Name, func(t *testing.T) { fn(t, path, version) })
		}
	}
}

// back returns a gateway's connection to a server. It knows the server's tools: otherwise the
// gateway lists them at the first call, to check its headers.
func back(t *testing.T, transport transport.Transport, version string, mw ...mcp.Middleware) *mcp.Conn {
	t.Helper()
	c := mcptest.Dial(t, transport, &mcp.ClientOptions{Version: version, Forward: true})
	for _, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
	}
	c.Use(mw...)
	return c
}

// A gateway preserves the trace even if its server side, or the whole gateway, is not
// traced.
func TestTraceThroughUntracedGateway(t *testing.T) {
	for name, test := range map[string]struct {
		mw   func(o *observed) []mcp.Middleware
		want []string
	}{
		"client": {
			func(o *observed) []mcp.Middleware { return []mcp.Middleware{otelmcp.Client(o.options())} },
			[]string{"tools/call b_who client", "tools/call who client", "tools/call who server"},
		},
		"none": {
			func(*observed) []mcp.Middleware { return nil },
			[]string{"tools/call b_who client", "tools/call who server"},
		},
	} {
		for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
			t.Run(name+" "+version, func(t *testing.T) {
				mcptest.NoLeaks(t)
				o := observe(t)
				gateway := mcp.NewMux("gateway", "v1", quiet())
				gateway.Mount("b_", back(t, mcptest.Paths()[0].Serve(t, traced(o)), version, test.mw(o)...))
				c := mcptest.Dial(t, mcp.InProcess(gateway), nil)
				c.Use(otelmcp.Client(o.options()))
				ctx, root := program(t, o)
				if got, err := mcp.Call[string](ctx, c, "b_who", nil); err != nil || got != "ada" {
					t.Errorf("the baggage is %q, %v", got, err)
				}
				chain(t, o.spans(), root, test.want...)
			})
		}
	}
}

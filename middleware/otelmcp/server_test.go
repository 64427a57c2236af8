// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware/otelmcp"
)

var errLost = errors.New("lost")

func TestServerSpans(t *testing.T) {
	version := " mcp.protocol.version=" + mcp.LatestVersion
	tool := "gen_ai.operation.name=execute_tool gen_ai.tool.name=t jsonrpc.request.id=1 mcp.method.name=tools/call" + version
	read := func(uri string) *mcp.Request {
		return mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri})
	}
	named := mcptest.NewRequest("x/y", nil)
	named.ID = mcp.StringID("a-7")
	note := mcptest.NewRequest(mcp.NotificationRootsListChanged, nil)
	note.ID = mcp.ID{}
	overHTTP := call("t")
	overHTTP.Header = map[string][]string{}
	for name, test := range map[string]struct {
		h      mcp.Handler
		req    *mcp.Request
		span   string
		attrs  string
		status string // "" means unset
	}{
		"ok":           {answering(mcp.TextResult(""), nil), call("t"), "tools/call t", tool, ""},
		"asks":         {answering(&mcp.InputRequired{}, nil), call("t"), "tools/call t", tool, ""},
		"tool error":   {answering(mcp.ErrorResult(errLost), nil), call("t"), "tools/call t", "error.type=tool_error " + tool, "error lost"},
		"plain error":  {answering(nil, errLost), call("t"), "tools/call t", "error.type=-32603 " + tool + " rpc.response.status_code=-32603", "error lost"},
		"unknown tool": {answering(nil, mcp.NewUnknownNameError("tool", "t")), call("t"), "tools/call", "error.type=-32602 " + tool + " rpc.response.status_code=-32602", `error unknown tool "t"`},
		"own code":     {answering(nil, mcp.Errorf(7, "seven")), call("t"), "tools/call", "error.type=7 " + tool + " rpc.response.status_code=7", "error seven"},
		"over HTTP":    {answering(mcp.TextResult(""), nil), overHTTP, "tools/call t", tool + " network.protocol.name=http network.transport=tcp", ""},
		"prompt": {answering(&mcp.GetPromptResult{}, nil), mcptest.NewRequest(mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "p"}), "prompts/get p",
			"gen_ai.prompt.name=p jsonrpc.request.id=1 mcp.method.name=prompts/get" + version, ""},
		"resource": {answering(&mcp.ReadResourceResult{}, nil), read("notes://me:pw@host/a?token=x#y"), "resources/read",
			"jsonrpc.request.id=1 mcp.method.name=resources/read" + version + " mcp.resource.uri=notes://host/a", ""},
		"opaque resource": {answering(&mcp.ReadResourceResult{}, nil), read("urn:a?b"), "resources/read",
			"jsonrpc.request.id=1 mcp.method.name=resources/read" + version + " mcp.resource.uri=urn:a", ""},
		"list":         {answering(&mcp.ListToolsResult{}, nil), mcptest.NewRequest(mcp.MethodListTools, nil), "tools/list", "jsonrpc.request.id=1 mcp.method.name=tools/list" + version, ""},
		"own method":   {answering(&mcp.EmptyResult{}, nil), mcptest.NewRequest("vendor/m", nil), "_OTHER", "jsonrpc.request.id=1 mcp.method.name=vendor/m" + version, ""},
		"other method": {answering(&mcp.EmptyResult{}, nil), named, "_OTHER", "jsonrpc.request.id=a-7 mcp.method.name=x/y" + version, ""},
		"notification": {answering(nil, nil), note, note.Method, "mcp.method.name=" + note.Method + version, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t)
			opts := o.options()
			test.attrs = strings.ReplaceAll(test.attrs, "request.id=1", "request.id="+strings.Trim(test.req.ID.String(), `"`))
			_, _, _ = mcptest.Do(t, otelmcp.Server(opts)(test.h), test.req)
			checkSpan(t, o.only(t), trace.SpanKindServer, test.span, test.attrs, test.status)
		})
	}
}

// A panic is recorded and continues.
func TestServerPanics(t *testing.T) {
	o := observe(t)
	h := otelmcp.Server(o.options())(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic("boom") }))
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("recovered %v", v)
			}
		}()
		_, _ = h.ServeMCP(t.Context(), call("t"))
	}()
	span := o.only(t)
	want := "error.type=panic"
	if attrs := written(span.Attributes); !strings.Contains(attrs, want) || span.Name != "tools/call t" || statusOf(span) != "error" {
		t.Errorf("got %s, %s, %s", span.Name, attrs, statusOf(span))
	}
	points := o.points(t, serverDuration)
	if len(points) != 1 || !strings.Contains(points[0], want) || !strings.Contains(points[0], "rpc.response.status_code=-32603") {
		t.Errorf("measured %q", points)
	}
}

func TestServerCancelled(t *testing.T) {
	for want, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancelled": context.WithCancel,
		"timeout":   func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 0) },
	} {
		o := observe(t)
		ctx, cancel := end(t.Context())
		cancel()
		_, _ = otelmcp.Server(o.options())(answering(nil, errLost)).ServeMCP(ctx, call("t"))
		span := o.only(t)
		if attrs := written(span.Attributes); !strings.Contains(attrs, "error.type="+want) || statusOf(span) != "error" || span.Name != "tools/call" {
			t.Errorf("%s: got %s, %s, %s", want, span.Name, attrs, statusOf(span))
		}
	}
}

// The parent of a span is taken, in this order, from _meta, the context and the header.
func TestServerParents(t *testing.T) {
	inMeta := map[string]string{"traceparent": parentA, "tracestate": "a=b", "baggage": "who=meta"}
	inHeader := map[string][]string{"Traceparent": {parentB}, "Baggage": {"who=header"}}
	for name, test := range map[string]struct {
		meta    map[string]string
		header  map[string][]string
		ambient bool
		public  bool
		parent  string // the ID of a span, or "ambient"
		link    string
		baggage string
	}{
		"nothing":                {},
		"meta":                   {meta: inMeta, parent: spanA, baggage: "meta"},
		"header":                 {header: inHeader, parent: spanB, baggage: "header"},
		"both":                   {meta: inMeta, header: inHeader, parent: spanA, baggage: "meta"},
		"context":                {ambient: true, parent: "ambient"},
		"context, header":        {ambient: true, header: inHeader, parent: "ambient"},
		"context, meta":          {ambient: true, meta: inMeta, parent: spanA, link: "ambient", baggage: "meta"},
		"only baggage in meta":   {meta: map[string]string{"baggage": "who=meta"}, header: inHeader, parent: spanB, baggage: "meta"},
		"malformed":              {meta: map[string]string{"traceparent": "00-x", "baggage": "=,;"}, header: inHeader, parent: spanB, baggage: "header"},
		"zero":                   {meta: map[string]string{"traceparent": "00-" + strings.Repeat("0", 32) + "-" + strings.Repeat("0", 16) + "-01"}},
		"public, meta":           {public: true, meta: inMeta, link: spanA},
		"public, header":         {public: true, header: inHeader, link: spanB},
		"public, context, meta":  {public: true, ambient: true, meta: inMeta, parent: "ambient", link: spanA},
		"public without a trace": {public: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t)
			opts := o.options()
			opts.Public = test.public
			req := callWith("t", test.meta)
			req.Header = test.header
			ctx, ids := t.Context(), map[string]string{"": strings.Repeat("0", 16), "ambient": ""}
			if test.ambient {
				var ambient trace.SpanContext
				ctx, ambient = o.begun(t)
				ids["ambient"] = ambient.SpanID().String()
			}
			id := func(name string) string {
				if id, ok := ids[name]; ok {
					return id
				}
				return name
			}
			k := new(keeping)
			_, _ = otelmcp.Server(opts)(k).ServeMCP(ctx, req)
			span := o.only(t)
			if got := span.Parent.SpanID().String(); got != id(test.parent) {
				t.Errorf("the parent is %s, want %s", got, id(test.parent))
			}
			var link string
			for _, l := range span.Links {
				link += l.SpanContext.SpanID().String()
			}
			if test.link == "" && link != "" || test.link != "" && link != id(test.link) {
				t.Errorf("linked to %q, want %q", link, id(test.link))
			}
			if got := baggage.FromContext(k.ctx).Member("who").Value(); got != test.baggage {
				t.Errorf("the baggage is %q, want %q", got, test.baggage)
			}
			if got := trace.SpanContextFromContext(k.ctx); got.SpanID() != span.SpanContext.SpanID() {
				t.Error("the handler's context has another span")
			}
			if test.parent == spanA && span.SpanContext.TraceState().Get("a") != "b" {
				t.Error("the trace's state is lost")
			}
		})
	}
}

// A request to a mounted mux has one span per mux.
func TestServerMounted(t *testing.T) {
	o := observe(t)
	inner, outer := mcp.NewMux("inner", "v1", quiet()), mcp.NewMux("outer", "v1", quiet())
	inner.Use(otelmcp.Server(o.options()))
	inner.Tool("t", answering(mcp.TextResult(""), nil))
	outer.Use(otelmcp.Server(o.options()))
	outer.Mount("in_", inner)
	_, _ = outer.ServeMCP(t.Context(), callWith("in_t", map[string]string{"traceparent": parentA}))
	spans := o.spans()
	if len(spans) != 2 || spans[0].Name != "tools/call t" || spans[1].Name != "tools/call in_t" {
		t.Fatalf("got %v", spans)
	}
	if spans[1].Parent.SpanID().String() != spanA || spans[0].Parent.SpanID() != spans[1].SpanContext.SpanID() || len(spans[0].Links) != 0 {
		t.Errorf("the parents are %s and %s", spans[1].Parent.SpanID(), spans[0].Parent.SpanID())
	}
}

// Text from peers is truncated without splitting characters.
func TestServerClips(t *testing.T) {
	o := observe(t)
	for _, long := range []string{strings.Repeat("é", 1000), "x" + strings.Repeat("é", 1000)} {
		_, _ = otelmcp.Server(o.options())(answering(nil, mcp.NewUnknownNameError("tool", long))).ServeMCP(t.Context(), call(long))
		span := o.only(t)
		for _, a := range append(span.Attributes, attribute.String("status", span.Status.Description)) {
			if s := a.Value.String(); len(s) > 260 || strings.ContainsRune(s, '\uFFFD') {
				t.Errorf("%s is %d bytes: %q", a.Key, len(s), s)
			}
		}
	}
	for _, text := range []string{"a\xff", strings.Repeat("\x80", 1000)} {
		_, _ = otelmcp.Server(o.options())(answering(nil, errors.New(text))).ServeMCP(t.Context(), call("t"))
		if got := o.only(t).Status.Description; !utf8.ValidString(got) {
			t.Errorf("the status is %q", got)
		}
	}
}

func TestAttributesOption(t *testing.T) {
	o := observe(t)
	opts := o.options()
	opts.Attributes = []attribute.KeyValue{attribute.String("network.transport", "unix"), attribute.String("server.address", "here")}
	h := otelmcp.Server(opts)(answering(mcp.TextResult(""), nil))
	opts.Attributes[1] = attribute.String("server.address", "there") // options are copied
	req := call("t")
	req.Header = map[string][]string{}
	_, _ = h.ServeMCP(t.Context(), req)
	for _, attrs := range []string{written(o.only(t).Attributes), o.points(t, serverDuration)[0]} {
		if !strings.Contains(attrs, "network.transport=unix") || strings.Contains(attrs, "tcp") || !strings.Contains(attrs, "server.address=here") {
			t.Errorf("got %s", attrs)
		}
	}
}

// A tool that fails because its context ended is cancelled, not failed.
func TestFindingU15CancelledToolsAreCancelled(t *testing.T) {
	o := observe(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = otelmcp.Server(o.options())(answering(mcp.ErrorResult(ctx.Err()), nil)).ServeMCP(ctx, call("t"))
	if attrs := written(o.only(t).Attributes); !strings.Contains(attrs, "error.type=cancelled") {
		t.Errorf("got %s", attrs)
	}
}

// What is omitted from the attribute of a resource is also omitted from the description of
// its error.
func TestSecretsInErrors(t *testing.T) {
	const uri = "https://ada:pa55word@example.com/file?sig=s1gnature#fragment"
	for name, serve := range map[string]func(o *observed) mcp.Handler{
		"not found": func(*observed) mcp.Handler { return mcp.NewMux("m", "v1", quiet()) },
		"fails": func(*observed) mcp.Handler {
			return answering(nil, errors.New("fetching "+uri+": 503, with api_key=k3y"))
		},
	} {
		o := observe(t)
		h := otelmcp.Server(o.options())(serve(o))
		if _, _, err := mcptest.Do(t, h, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri})); err == nil {
			t.Fatal("there is no error")
		}
		status := o.only(t).Status
		if !strings.Contains(status.Description, "https://example.com/file") || status.Code != codes.Error {
			t.Errorf("%s: the status is %+v", name, status)
		}
		for _, secret := range []string{"pa55word", "s1gnature", "fragment", "k3y"} {
			if strings.Contains(status.Description, secret) {
				t.Errorf("%s: the description has %s: %s", name, secret, status.Description)
			}
		}
	}
}

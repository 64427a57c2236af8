// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package matrix_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/middleware"
)

// regional returns a server with a tool whose arguments are mirrored in headers, and a tool
// that it does not list.
func regional(lists *atomic.Int32) *mcp.Mux {
	mux := mcp.NewMux("regional", "v1", &mcp.MuxOptions{Logger: quiet})
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListTools {
				lists.Add(1)
			}
			return next.ServeMCP(ctx, req)
		})
	})
	run := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return mcp.TextResult("ran with " + string(req.Arguments())), nil
	})
	mux.Tool("run", mcp.WithDescription(run, &mcp.Tool{InputSchema: json.RawMessage(
		`{"type":"object","properties":{"where":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}},"n":{"type":"integer","x-mcp-header":"N"}}}`)}))
	mux.Tool("secret", mcp.WithDescription(run, nil))
	return mux
}

// gateways returns handlers that pass calls on to a server, by the prefix of their tools.
func gateways(t *testing.T, server mcp.Handler, version string) map[string]struct {
	handler mcp.Handler
	prefix  string
} {
	t.Helper()
	behind := mcptest.Serve(t, mcphttp.NewHandler(server, &mcphttp.Options{Logger: quiet}))
	client := func() *mcp.Client {
		return mcp.NewClient("gateway", "v1", &mcp.ClientOptions{Version: version, Forward: true, Logger: quiet})
	}
	connected := func() *mcp.Conn {
		conn, err := client().Connect(t.Context(), mcphttp.NewTransport(behind, nil))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	maintained := func() *mcp.Upstream {
		up := client().Maintain(context.Background(), mcphttp.NewTransport(behind, nil), nil)
		t.Cleanup(func() { _ = up.Close() })
		return up
	}
	mounted := func(h mcp.Handler) mcp.Handler {
		mux := mcp.NewMux("gateway", "v1", &mcp.MuxOptions{Logger: quiet})
		mux.Mount("in_", h)
		return mux
	}
	seen := middleware.Visible(func(context.Context, mcp.Kind, string) bool { return true })
	return map[string]struct {
		handler mcp.Handler
		prefix  string
	}{
		"the server itself": {server, ""},
		"Mux in a Mux":      {mounted(server), "in_"},
		"Conn":              {connected(), ""},
		"Conn in a Mux":     {mounted(connected()), "in_"},
		"Upstream":          {maintained(), ""},
		"Upstream in a Mux": {mounted(maintained()), "in_"},
		"psi gateway":       {seen(maintained()), ""}, // see mcp/cmd/psi/gateway.go
		"psi gateway, file": {seen(mounted(seen(maintained()))), "in_"},
		"two gateways":      {mounted(mounted(connected())), "in_in_"},
	}
}

// callWith calls a tool over HTTP with the given Mcp-Param headers, and returns the answer.
func callWith(t *testing.T, h mcp.Handler, name, arguments string, params map[string]string) string {
	t.Helper()
	body := message(mcp.MethodCallTool, `{"name":"`+name+`","arguments":`+arguments+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"`+mcp.LatestVersion+
		`","io.modelcontextprotocol/clientCapabilities":{}}}`)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": mcp.LatestVersion,
		"Mcp-Method": mcp.MethodCallTool, "Mcp-Name": transport.EncodeHeaderValue(name),
	} {
		r.Header.Set(key, value)
	}
	for key, value := range params {
		r.Header.Set("Mcp-Param-"+key, value)
	}
	w := httptest.NewRecorder()
	mcphttp.NewHandler(h, &mcphttp.Options{Logger: quiet}).ServeHTTP(w, r)
	return w.Body.String()
}

// The headers of a call agree with its arguments on every path to the tool: what stands in
// front may route and authorize by them, and the next hop gets new ones, made from the
// arguments.
func TestFindingX4HeadersAgainstArguments(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		var lists atomic.Int32
		for name, gw := range gateways(t, regional(&lists), version) {
			t.Run(version+"/"+name, func(t *testing.T) {
				for _, c := range []struct {
					tool, arguments string
					headers         map[string]string
					runs            bool
				}{
					{"run", `{}`, nil, true},
					{"run", `{"where":{"region":"us"}}`, map[string]string{"Region": "us"}, true},
					{"run", `{"where":{"region":"us"}}`, map[string]string{"Region": "eu"}, false},
					{"run", `{"where":{"region":"us"}}`, nil, false},
					{"run", `{}`, map[string]string{"Region": "eu"}, false},
					{"run", `{"n":7e0}`, map[string]string{"N": "7"}, true},
					{"run", `{"n":7}`, map[string]string{"N": "8"}, false},
					{"run", `{"where":{"region":"ü"}}`, map[string]string{"Region": "ü"}, false},
					{"run", `{"where":{"region":"ü"}}`, map[string]string{"Region": "=?base64?w7w=?="}, true},
					{"run", `{"n":1}`, map[string]string{"N": "1", "Other": "x"}, true},
					{"secret", `{}`, nil, true},
				} {
					got := callWith(t, gw.handler, gw.prefix+c.tool, c.arguments, c.headers)
					if c.runs != strings.Contains(got, "ran with") || !c.runs && !strings.Contains(got, "-32020") {
						t.Errorf("%s with %s and the headers %v: got %s, want it to run: %t", c.tool, c.arguments, c.headers, got, c.runs)
					}
				}
			})
		}
	}
}

// A header that cannot be checked is refused, and looking for unknown tools does not make a
// gateway list them for each call.
func TestFindingX4HeadersThatCannotBeChecked(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		var lists atomic.Int32
		gw := gateways(t, regional(&lists), version)["Conn in a Mux"]
		for range 20 {
			if got := callWith(t, gw.handler, "in_secret", `{}`, map[string]string{"Region": "eu"}); !strings.Contains(got, "-32020") || !strings.Contains(got, "does not list the tool") {
				t.Errorf("got %s", got)
			}
			if got := callWith(t, gw.handler, "in_made_up", `{}`, nil); !strings.Contains(got, "unknown tool") {
				t.Errorf("got %s", got)
			}
		}
		if n := lists.Load(); n > 2 {
			t.Errorf("in front of %s, 40 calls of tools that are not listed listed them %d times", version, n)
		}
	}
}

// A gateway that knows an older definition of a tool compares the headers with the one with
// which it makes new headers.
func TestLookHeadersOfAToolThatChanges(t *testing.T) {
	run := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return mcp.TextResult("ran with " + string(req.Arguments())), nil
	})
	annotated := &mcp.Tool{InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)}
	for _, c := range []struct {
		before  *mcp.Tool // nil if there was no tool
		headers map[string]string
		runs    bool
	}{
		{&mcp.Tool{InputSchema: json.RawMessage(`{"type":"object"}`)}, map[string]string{"Region": "eu"}, false},
		{&mcp.Tool{InputSchema: json.RawMessage(`{"type":"object"}`)}, nil, false},
		{&mcp.Tool{InputSchema: json.RawMessage(`{"type":"object"}`)}, map[string]string{"Region": "us"}, true},
		{nil, map[string]string{"Region": "eu"}, false},
		{nil, nil, false},
	} {
		server := mcp.NewMux("changing", "v1", &mcp.MuxOptions{Logger: quiet})
		server.Tool("other", mcp.WithDescription(run, nil))
		if c.before != nil {
			server.Tool("run", mcp.WithDescription(run, c.before))
		}
		for name, gw := range gateways(t, server, mcp.LatestVersion) {
			if name == "the server itself" || name == "Mux in a Mux" {
				continue
			}
			// The gateway has read the list, and a moment later the server changes.
			callWith(t, gw.handler, gw.prefix+"run", `{"region":"us"}`, nil)
			server.RemoveTool("run")
			server.Tool("run", mcp.WithDescription(run, annotated))
			got := callWith(t, gw.handler, gw.prefix+"run", `{"region":"us"}`, c.headers)
			if c.runs != strings.Contains(got, "ran with") {
				t.Errorf("%s, before %v, with the headers %v: got %s, want it to run: %t", name, c.before != nil, c.headers, got, c.runs)
			}
			server.RemoveTool("run")
			if c.before != nil {
				server.Tool("run", mcp.WithDescription(run, c.before))
			}
		}
	}
}

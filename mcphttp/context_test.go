// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
)

// Everything that a handler is called for comes from an HTTP request, in either
// era: also the subscription that the stream of a session makes. So a handler can
// choose a mux by the HTTP request.
func TestRequestFromIsNeverNil(t *testing.T) {
	tenants := map[string]*mcp.Mux{}
	for _, name := range []string{"acme", "globex"} {
		tenants[name] = mcp.NewMux(name, "v1.0.0", &mcp.MuxOptions{Logger: quiet})
		tenants[name].Tool("a", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return name, nil }, nil))
	}
	choose := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		r := mcphttp.RequestFromContext(ctx)
		if r == nil {
			t.Errorf("%s came without an HTTP request", req.Method)
			return nil, mcp.NewMethodNotFoundError(req.Method)
		}
		return tenants[r.PathValue("tenant")].ServeMCP(ctx, req)
	})
	endpoint := mcphttp.NewHandler(choose, &mcphttp.Options{Logger: quiet})
	routes := http.NewServeMux()
	routes.Handle("/{tenant}/mcp", endpoint)
	server := httptest.NewServer(routes)
	defer server.Close()
	defer func() { _ = endpoint.Shutdown(context.Background()) }()

	for _, version := range []string{mcp.ModernVersions()[0], mcp.LegacyVersions()[0]} {
		c := mcptest.Dial(t, mcphttp.NewTransport(server.URL+"/globex/mcp", nil), &mcp.ClientOptions{Version: version})
		changes := make(chan mcp.Change, 10)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(change mcp.Change) { changes <- change }); err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		tenants["globex"].RemoveTool("b")
		tenants["globex"].Tool("b", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "b", nil }, nil))
		select {
		case <-changes:
		case <-ctx.Done():
			t.Errorf("%s: no word of the change", version)
		}
		cancel()
		c.Close()
	}
}

// The same holds for the transport of 2024-11-05.
func TestRequestFromIsNeverNilOverSSE(t *testing.T) {
	methods := make(chan string, 16)
	mux := mcp.NewMux("test", "v1.0.0", &mcp.MuxOptions{Logger: quiet})
	mux.Tool("a", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "a", nil }, nil))
	h := mcphttp.NewSSEHandler(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if mcphttp.RequestFromContext(ctx) == nil {
			t.Errorf("%s came without an HTTP request", req.Method)
		}
		methods <- req.Method
		return mux.ServeMCP(ctx, req)
	}), &mcphttp.Options{Logger: quiet})
	server := httptest.NewServer(h)
	defer server.Close()
	defer func() { _ = h.Shutdown(context.Background()) }()

	res, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	endpoint := ""
	for endpoint == "" && lines.Scan() {
		endpoint, _ = strings.CutPrefix(lines.Text(), "data: ")
		if !strings.HasPrefix(endpoint, "?") {
			endpoint = ""
		}
	}
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"test","version":"v1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		posted, err := http.Post(server.URL+endpoint, "application/json", strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		_ = posted.Body.Close()
	}
	for method := range methods {
		if method == mcp.MethodListen {
			return
		}
	}
}

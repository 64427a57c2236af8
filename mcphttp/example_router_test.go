// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// A Router serves all endpoints of a server; more can be added.
func ExampleNewRouter() {
	router := mcphttp.NewRouter(greeter("psi"), nil)
	router.Handle("/version", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "v1.0.0") }))
	server := httptest.NewServer(router)
	defer server.Close()

	greet(server.URL+"/mcp", nil)
	greetings(mcphttp.NewSSETransport(server.URL+"/sse", nil))
	for _, path := range []string{"/healthz", "/version"} {
		res, err := http.Get(server.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = res.Body.Close()
		fmt.Println(path, res.Status)
	}
	// Output:
	// hello, this is psi
	// 2025-11-25 hello, this is psi
	// /healthz 200 OK
	// /version 200 OK
}

// An SSEHandler serves the deprecated transport alone.
func ExampleNewSSEHandler() {
	routes := http.NewServeMux()
	routes.Handle("/sse", mcphttp.NewSSEHandler(greeter("psi"), nil))
	server := httptest.NewServer(routes)
	defer server.Close()

	greetings(mcphttp.NewSSETransport(server.URL+"/sse", nil))
	// Output:
	// 2025-11-25 hello, this is psi
}

// CORS is the outermost middleware, outside of everything that rejects requests.
func ExampleCORS() {
	router := mcphttp.NewRouter(greeter("psi"), &mcphttp.RouterOptions{Middleware: []func(http.Handler) http.Handler{
		mcphttp.CORS("https://app.example.com"),
		// then auth.Require, and the like
	}})
	for _, origin := range []string{"https://app.example.com", "https://evil.example"} {
		r := httptest.NewRequest(http.MethodOptions, "/mcp", nil)
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", http.MethodPost)
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		fmt.Printf("%s: %q\n", origin, w.Header().Get("Access-Control-Allow-Origin"))
	}
	// Output:
	// https://app.example.com: "https://app.example.com"
	// https://evil.example: ""
}

// A slow tool closes the connection, so that no proxy has to hold it open; the client
// reconnects for the response. Clients that cannot do that just wait.
func ExampleCloseStream() {
	mux := mcp.NewMux("renderer", "v1.0.0", nil)
	mux.Tool("render", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		if err := mcphttp.CloseStream(ctx); errors.Is(err, mcphttp.ErrNoStream) {
			return "rendered while the connection was held", nil
		}
		return "rendered meanwhile", nil
	}, nil))
	server := httptest.NewServer(mcphttp.NewHandler(mux, nil))
	defer server.Close()

	for _, version := range []string{mcp.LatestVersion, "2025-11-25"} {
		client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{Version: version})
		ctx := context.Background()
		conn, err := client.Connect(ctx, mcphttp.NewTransport(server.URL, nil))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(conn.Version(), " ")
		fmt.Println(mcp.Call[string](ctx, conn, "render", nil))
		_ = conn.Close()
	}
	// Output:
	// 2026-07-28 rendered while the connection was held <nil>
	// 2025-11-25 rendered meanwhile <nil>
}

// A caller that lacks a scope gets a challenge. Authentication middleware writes it in the
// terms of its scheme; auth.Require does so for OAuth.
func ExampleWithChallenge() {
	mux := mcp.NewMux("files", "v1.0.0", nil)
	mux.Tool("write", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		return "", mcp.NewInsufficientScopeError("files:write")
	}, nil))
	authenticated := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r = mcphttp.WithPrincipal(r, &mcp.Principal{Subject: "ada"})
			next.ServeHTTP(w, mcphttp.WithChallenge(r, func(scopes []string) string {
				return fmt.Sprintf("Bearer error=%q, scope=%q", "insufficient_scope", scopes[0])
			}))
		})
	}
	server := httptest.NewServer(authenticated(mcphttp.NewHandler(mux, nil)))
	defer server.Close()
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcphttp.NewTransport(server.URL, nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	_, err = conn.CallTool(ctx, &mcp.CallToolParams{Name: "write"})
	if status, ok := errors.AsType[*mcphttp.StatusError](err); ok {
		fmt.Println(status.Status, status.Header.Get("WWW-Authenticate"))
	}
	// Output: 403 Bearer error="insufficient_scope", scope="files:write"
}

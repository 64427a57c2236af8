// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// greeter returns a mux with one tool, which greets in the name of whom.
func greeter(whom string) *mcp.Mux {
	mux := mcp.NewMux(whom, "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		if p := mcp.PrincipalFromContext(ctx); p != nil {
			return fmt.Sprintf("hello %s, this is %s", p.Subject, whom), nil
		}
		return "hello, this is " + whom, nil
	}, nil))
	return mux
}

// greet calls the tool like a client of 2026-07-28 and prints the text of the result or the
// HTTP status.
func greet(url string, header map[string]string) {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"greet"},
	}
	for key, value := range header {
		req.Header.Set(key, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		panic(err)
	}
	if res.StatusCode != http.StatusOK {
		fmt.Println(res.Status)
		return
	}
	_, text, _ := strings.Cut(string(answer), `"text":"`)
	text, _, _ = strings.Cut(text, `"`)
	fmt.Println(text)
}

func ExampleNewHandler() {
	routes := http.NewServeMux()
	routes.Handle("/mcp", mcphttp.NewHandler(greeter("psi"), nil))
	server := httptest.NewServer(routes)
	defer server.Close()

	greet(server.URL+"/mcp", nil)
	// Output: hello, this is psi
}

// A web page cannot use the visitor's browser to reach a server that listens on the
// visitor's machine or trusts the visitor's network.
func ExampleOptions() {
	mux := greeter("psi")
	h := mcphttp.NewHandler(mux, &mcphttp.Options{
		AllowedHosts:   []string{"mcp.example.com"},
		AllowedOrigins: []string{"https://app.example.com"},
	})
	server := httptest.NewServer(h)
	defer server.Close()

	greet(server.URL, nil)
	greet(server.URL, map[string]string{"Origin": "https://app.example.com"})
	greet(server.URL, map[string]string{"Origin": "https://evil.example"})
	// Output:
	// hello, this is psi
	// hello, this is psi
	// 403 Forbidden
}

// A short Handler chooses the mux for each request.
func ExampleRequestFromContext() {
	tenants := map[string]*mcp.Mux{"acme": greeter("acme"), "globex": greeter("globex")}
	choose := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		r := mcphttp.RequestFromContext(ctx) // nil on other transports
		if r == nil || tenants[r.PathValue("tenant")] == nil {
			return nil, mcp.Errorf(mcp.CodeMethodNotFound, "there is no such tenant")
		}
		return tenants[r.PathValue("tenant")].ServeMCP(ctx, req)
	})
	routes := http.NewServeMux()
	routes.Handle("/{tenant}/mcp", mcphttp.NewHandler(choose, nil))
	server := httptest.NewServer(routes)
	defer server.Close()

	greet(server.URL+"/acme/mcp", nil)
	greet(server.URL+"/globex/mcp", nil)
	greet(server.URL+"/initech/mcp", nil)
	// Output:
	// hello, this is acme
	// hello, this is globex
	// 404 Not Found
}

// HTTP middleware authenticates; tools look up the caller.
func ExampleWithPrincipal() {
	authenticated := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, ok := r.BasicAuth()
			if !ok || password != "correct horse" {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, mcphttp.WithPrincipal(r, &mcp.Principal{Issuer: "example", Subject: user}))
		})
	}
	server := httptest.NewServer(authenticated(mcphttp.NewHandler(greeter("psi"), nil)))
	defer server.Close()

	greet(server.URL, nil)
	greet(strings.Replace(server.URL, "http://", "http://ada:correct%20horse@", 1), nil)
	// Output:
	// 401 Unauthorized
	// hello ada, this is psi
}

func ExampleHandler_Shutdown() {
	endpoint := mcphttp.NewHandler(greeter("psi"), nil)
	server := httptest.NewServer(endpoint).Config

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// The endpoint first: it ends the streams that server.Shutdown would wait for.
	if err := errors.Join(endpoint.Shutdown(ctx), server.Shutdown(ctx)); err != nil {
		log.Print(err)
	}
	fmt.Println("stopped")
	// Output: stopped
}

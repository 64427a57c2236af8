// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// TestDeploying reaches a server through a proxy on the same machine, which passes on the
// public name, and stops it while a session is open.
func TestDeploying(t *testing.T) {
	mux := newMux()
	endpoint := mcphttp.NewHandler(mux, &mcphttp.Options{AllowedHosts: []string{"mcp.example.com"}})
	here := httptest.NewServer(endpoint)
	defer here.Close()
	server := here.Config

	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{Version: mcp.LegacyVersions()[0]})
	conn, err := client.Connect(t.Context(), mcphttp.NewTransport(here.URL, &mcphttp.TransportOptions{Client: &http.Client{Transport: proxied{}}}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := errors.Join(endpoint.Shutdown(ctx), server.Shutdown(ctx)); err != nil {
		log.Print(err)
	}
	if ctx.Err() != nil {
		t.Error(ctx.Err())
	}
}

// proxied sends requests as a proxy does that keeps the Host.
type proxied struct{}

func (proxied) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = "mcp.example.com"
	return http.DefaultTransport.RoundTrip(r)
}

// TestLogin makes the transport of a client that logs in. examples/auth has the login.
func TestLogin(t *testing.T) {
	const resource = "https://notes.example.com/mcp"
	authorized := oauth.NewTransport(resource, &oauth.Options{
		Grant: &oauth.AuthorizationCode{Redirector: &oauth.Loopback{}}, // opens a browser
	})
	defer authorized.Close()
	transport := mcphttp.NewTransport(resource, &mcphttp.TransportOptions{
		Client: &http.Client{Transport: authorized},
	})
	if transport == nil {
		t.Error("no transport")
	}
}

// withoutStreams refuses the streams on which older clients wait for changes.
func withoutStreams(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Allow", "POST, DELETE")
			http.Error(w, "this server opens no streams", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Clients of all revisions work with a server that opens no streams.
func TestFindingRM10NoStandingStreams(t *testing.T) {
	mux := newMux()
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListen {
				return nil, mcp.NewMethodNotFoundError(req.Method)
			}
			return next.ServeMCP(ctx, req)
		})
	})
	endpoint := mcphttp.NewHandler(mux, nil)
	gets := make(chan int, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			gets <- 1
		}
		withoutStreams(endpoint).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for _, version := range append(mcp.LegacyVersions(), mcp.LatestVersion) {
		if version == "2024-11-05" {
			continue // another transport
		}
		client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{Version: version})
		conn, err := client.Connect(t.Context(), mcphttp.NewTransport(server.URL, nil))
		if err != nil {
			t.Fatal(version, err)
		}
		if got, err := mcp.Call[string](t.Context(), conn, "greet", nil); err != nil || got != "Hello!" {
			t.Errorf("%s: got %q, %v", version, got, err)
		}
		if _, err := conn.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {}); version == mcp.LatestVersion && err == nil {
			t.Error("a subscription was accepted")
		}
		if err := conn.Close(); err != nil {
			t.Error(version, err)
		}
	}
	if len(gets) == 0 {
		t.Error("no client asked for a stream")
	}
}

// TestHealth checks, without a session, that MCP answers: from outside as the guide does with
// curl, and from inside.
func TestHealth(t *testing.T) {
	mux := newMux()
	routes := http.NewServeMux()
	routes.Handle("/mcp", mcphttp.NewHandler(mux, nil))
	routes.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		conn, err := mcp.NewClient("probe", "v1.0.0", nil).Connect(r.Context(), mcp.InProcess(mux))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		conn.Close()
	})
	const discover = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	outside := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(discover))
	outside.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"server/discover"},
	}
	for _, r := range []*http.Request{outside, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)} {
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", r.URL, w.Code, w.Body)
		}
	}
}

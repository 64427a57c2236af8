// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"net/http/httptest"
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/go-psi/psi/examples/auth/authserver"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

var quiet = slog.New(slog.DiscardHandler)

func serveLogin(t *testing.T) (issuer string) {
	t.Helper()
	return mcptest.ServeFunc(t, func(url string) http.Handler { return authserver.New(url, scopeRead, scopeWrite) })
}

func serveNotes(t *testing.T, issuer string) (resource string) {
	t.Helper()
	return mcptest.ServeFunc(t, func(url string) http.Handler {
		server, err := newServer(url+"/mcp", issuer, quiet)
		if err != nil {
			t.Fatal(err)
		}
		return server
	}) + "/mcp"
}

// authorized authorizes requests to a server, with the user's browser.
func authorized(t *testing.T, resource string, b *browser) *oauth.Transport {
	t.Helper()
	rt := oauth.NewTransport(resource, &oauth.Options{Base: b, Grant: &oauth.AuthorizationCode{Redirector: b.receiver()}, Logger: quiet})
	t.Cleanup(func() { _ = rt.Close() })
	return rt
}

func connect(t *testing.T, resource, version string, b *browser) (*mcp.Conn, error) {
	t.Helper()
	transport := mcphttp.NewTransport(resource, &mcphttp.TransportOptions{Client: &http.Client{Transport: authorized(t, resource, b)}})
	conn, err := mcp.NewClient("test", "v1.0.0", &mcp.ClientOptions{Version: version}).Connect(t.Context(), transport)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// inBothEras runs a test with a connection that a user has logged in for.
func inBothEras(t *testing.T, test func(t *testing.T, conn *mcp.Conn, b *browser)) {
	t.Helper()
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		t.Run(version, func(t *testing.T) {
			b := &browser{user: authserver.User, password: authserver.Password}
			conn, err := connect(t, serveNotes(t, serveLogin(t)), version, b)
			if err != nil {
				t.Fatal(err)
			}
			test(t, conn, b)
		})
	}
}

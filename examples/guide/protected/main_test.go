// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"net/http"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
)

func TestScopes(t *testing.T) {
	issuer := authtest.NewIssuer(t, resource)
	url := serve(t, issuer.URL)
	connect := func(claims authtest.Claims) *mcp.Conn {
		opts := &mcphttp.TransportOptions{Header: issuer.Bearer(claims)}
		return mcptest.Dial(t, mcphttp.NewTransport(url+"/mcp", opts), nil)
	}

	ada := connect(authtest.Claims{"sub": "ada", "scope": "notes:read"})
	if got, err := mcp.Call[string](t.Context(), ada, "read", nil); err != nil || got != "the notes of ada" {
		t.Errorf("read: %q, %v", got, err)
	}
	_, err := mcp.Call[string](t.Context(), ada, "write", nil)
	if refused, ok := errors.AsType[*mcphttp.StatusError](err); !ok || refused.Status != http.StatusForbidden {
		t.Errorf("write without the scope: %v", err)
	}
	writer := connect(authtest.Claims{"sub": "ada", "scope": "notes:read notes:write"})
	if _, err := mcp.Call[string](t.Context(), writer, "write", nil); err != nil {
		t.Errorf("write: %v", err)
	}
}

func TestInvalidTokens(t *testing.T) {
	issuer := authtest.NewIssuer(t, resource)
	url := serve(t, issuer.URL)
	for what, token := range issuer.InvalidTokens(authtest.Claims{"scope": "notes:read"}) {
		opts := &mcphttp.TransportOptions{Header: http.Header{"Authorization": {"Bearer " + token}}}
		_, err := mcp.NewClient("stranger", "v1.0.0", nil).Connect(t.Context(), mcphttp.NewTransport(url+"/mcp", opts))
		if !errors.Is(err, mcp.ErrUnauthorized) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// serve serves the server of the guide and returns its URL.
func serve(t *testing.T, issuer string) string {
	t.Helper()
	server, err := newServer(issuer, resource)
	if err != nil {
		t.Fatal(err)
	}
	return mcptest.Serve(t, server)
}

func TestConfiguration(t *testing.T) {
	if _, err := newServer("http://login.example.com", resource); err == nil {
		t.Error("an issuer without TLS is accepted")
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"net/http"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
)

func TestThermostat(t *testing.T) {
	issuer := authtest.NewIssuer(t, "https://home.example.com/mcp")
	server, err := newServer(issuer.Audience, issuer.URL)
	if err != nil {
		t.Fatal(err)
	}
	url := mcptest.Serve(t, server) + "/mcp"
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		for scope, allowed := range map[string]bool{"heat:read": false, "heat:write": true} {
			ada := &mcphttp.TransportOptions{Header: issuer.Bearer(authtest.Claims{"sub": "ada", "scope": scope})}
			c := mcptest.Dial(t, mcphttp.NewTransport(url, ada), &mcp.ClientOptions{Version: version})
			if got, err := mcp.Call[string](t.Context(), c, "whoami", nil); err != nil || got != "ada" {
				t.Errorf("whoami returns %q, %v", got, err)
			}
			got, err := mcp.Call[target](t.Context(), c, "set", map[string]int{"degrees": 21})
			if (err == nil) != allowed || allowed && got != (target{21, "eco"}) {
				t.Errorf("with %s, set returns %v, %v", scope, got, err)
			}
		}
	}
	for problem, token := range issuer.InvalidTokens(nil) {
		eve := &mcphttp.TransportOptions{Header: http.Header{"Authorization": {"Bearer " + token}}}
		if _, err := mcp.NewClient("eve", "v1", nil).Connect(t.Context(), mcphttp.NewTransport(url, eve)); err == nil {
			t.Errorf("a token that is %s is accepted", problem)
		}
	}
}

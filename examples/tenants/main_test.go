// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
)

// withKey sends an API key with every request.
type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, url, key, version string) (*mcp.Conn, error) {
	t.Helper()
	transport := mcphttp.NewTransport(url+"/mcp", &mcphttp.TransportOptions{Client: &http.Client{Transport: withKey(key)}})
	conn, err := mcp.NewClient("test", "v1.0.0", &mcp.ClientOptions{Version: version}).Connect(t.Context(), transport)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

func tools(t *testing.T, conn *mcp.Conn) (names []string) {
	t.Helper()
	for tool, err := range conn.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

func TestTenants(t *testing.T) {
	url := mcptest.Serve(t, newServer(slog.New(slog.DiscardHandler)))
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		acme, err := connect(t, url, "acme-key-0123456789abcdef", version)
		if err != nil {
			t.Fatal(err)
		}
		globex, err := connect(t, url, "globex-key-0123456789abcdef", version)
		if err != nil {
			t.Fatal(err)
		}
		if got := tools(t, acme); !slices.Equal(got, []string{"forget", "note", "notes"}) {
			t.Errorf("acme sees %v", got)
		}
		if got := tools(t, globex); !slices.Equal(got, []string{"note", "notes"}) {
			t.Errorf("globex sees %v", got)
		}
		if _, err := mcp.Call[notesOut](t.Context(), acme, "note", note{"secret"}); err != nil {
			t.Error(err)
		}
		if got, err := mcp.Call[notesOut](t.Context(), globex, "notes", nil); err != nil || len(got.Notes) != 0 {
			t.Errorf("globex reads %v, %v", got, err)
		}
		_, hidden := globex.CallTool(t.Context(), &mcp.CallToolParams{Name: "forget"})
		if mcp.CodeOf(hidden) != mcp.CodeInvalidParams {
			t.Errorf("a hidden tool: %v", hidden)
		}
		if got, err := mcp.Call[notesOut](t.Context(), acme, "forget", nil); err != nil || len(got.Notes) != 0 {
			t.Errorf("acme keeps %v, %v", got, err)
		}
		if _, err := connect(t, url, "wrong", version); !errors.Is(err, mcp.ErrUnauthorized) {
			t.Errorf("a wrong key: %v", err)
		}
	}
}

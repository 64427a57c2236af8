// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// follow is a user who consents to everything: it returns the query of the redirect.
func follow(ctx context.Context, page string) (url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil {
		return nil, err
	}
	return back.Query(), nil
}

// psi logs in at a server made with the official TypeScript SDK, requests another scope
// when a tool requires it, and recovers from the loss of its tokens and its registration.
func TestLogsInToTypeScript(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			server := <-start(t, node(t, "protected.mjs"))
			auth := oauth.NewTransport(server, &oauth.Options{
				Grant:  &oauth.AuthorizationCode{Redirector: oauth.NewRedirector("http://127.0.0.1/callback", follow)},
				Logger: logger(t),
			})
			t.Cleanup(func() { _ = auth.Close() })
			client := mcp.NewClient("psi", "v1", &mcp.ClientOptions{Version: version, Logger: logger(t)})
			c, err := client.Connect(limited(t), mcphttp.NewTransport(server, &mcphttp.TransportOptions{Client: &http.Client{Transport: auth}}))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			const both = "notes:read notes:write"
			for _, step := range []struct{ lose, tool, want, done string }{
				{"log", "scopes", "notes:read", "register, authorize notes:read, code"},
				{"log", "write", "written", "authorize " + both + ", code"},
				{"expire", "scopes", both, "refresh"},
				{"revoke", "scopes", both, "authorize " + both + ", code"},
				{"forget", "write", "written", "register, authorize " + both + ", code"},
			} {
				if step.lose != "log" {
					done(t, server, step.lose)
				}
				res, err := c.CallTool(limited(t), &mcp.CallToolParams{Name: step.tool})
				if err != nil || textOf(res.Content) != step.want {
					t.Errorf("%s, then %s: %+v, %v", step.lose, step.tool, res, err)
				}
				if got := done(t, server, "log"); got != step.done {
					t.Errorf("%s, then %s: the authorization server did %q, want %q", step.lose, step.tool, got, step.done)
				}
			}
		})
	}
}

// done makes the server lose some state, and returns what the server has done so far.
func done(t *testing.T, server, lose string) string {
	t.Helper()
	res, err := http.Get(strings.TrimSuffix(server, "mcp") + lose)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var lines []string
	if err := json.NewDecoder(res.Body).Decode(&lines); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, ", ")
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp"
)

// T31: Host and Origin, with and without allow-lists.
func TestGuard(t *testing.T) {
	lists := map[string]*mcphttp.Options{
		"default": {},
		"proxy":   {AllowedHosts: []string{"mcp.example.com", "other.example.com:8443"}},
		"origins": {AllowedOrigins: []string{"https://app.example.com", "http://localhost:*"}},
		"all":     {AllowedHosts: []string{"*"}, AllowedOrigins: []string{"*"}},
	}
	cases := []struct {
		options, host, origin string
		status                int
		names                 string // what the refusal names
	}{
		{"default", "localhost", "", 200, ""},
		{"default", "localhost:8080", "", 200, ""},
		{"default", "127.0.0.1:8080", "", 200, ""},
		{"default", "[::1]:8080", "", 200, ""},
		{"default", "[::1]", "", 200, ""},
		{"default", "evil.example.com", "", 403, "AllowedHosts"},
		{"default", "localhost.evil.example.com", "", 403, "AllowedHosts"},
		{"default", "localhost:8080", "http://localhost:8080", 200, ""},
		{"default", "localhost:8080", "http://127.0.0.1:3000", 200, ""},
		{"default", "localhost:8080", "http://evil.example.com", 403, "AllowedOrigins"},
		{"default", "localhost:8080", "null", 403, "AllowedOrigins"},
		{"proxy", "mcp.example.com", "", 200, ""},
		{"proxy", "MCP.example.com:443", "", 200, ""},
		{"proxy", "other.example.com:8443", "", 200, ""},
		{"proxy", "other.example.com", "", 403, "AllowedHosts"},
		{"proxy", "localhost", "", 200, ""},
		{"proxy", "mcp.example.com", "https://mcp.example.com", 200, ""},
		{"proxy", "mcp.example.com", "https://evil.example.com", 403, "AllowedOrigins"},
		{"origins", "localhost", "https://app.example.com", 200, ""},
		{"origins", "localhost", "https://app.example.com:444", 403, "AllowedOrigins"},
		{"origins", "localhost", "http://app.example.com", 403, "AllowedOrigins"},
		{"origins", "localhost:1", "http://localhost:3000", 200, ""},
		{"all", "evil.example.com", "http://evil.example.org", 200, ""},
	}
	for _, c := range cases {
		t.Run(c.options+" "+c.host+" "+c.origin, func(t *testing.T) {
			opts := *lists[c.options]
			s := serve(t, newHandler(t, tools(), &opts))
			body, h := callModern("hello")
			res := whole(t, s.post(body, with(h, header{"Host": c.host, "Origin": c.origin})))
			if res.status != c.status || !strings.Contains(res.body, c.names) {
				t.Errorf("%d %s, want %d naming %q", res.status, res.body, c.status, c.names)
			}
		})
	}
}

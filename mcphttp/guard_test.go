// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"net"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp"
)

// T31: Host and Origin, with and without allowlists.
func TestGuard(t *testing.T) {
	lists := map[string]*mcphttp.Options{
		"default": {},
		"proxy":   {AllowedHosts: []string{"mcp.example.com", "other.example.com:8443", "[2001:db8::1]"}},
		"origins": {AllowedOrigins: []string{"https://app.example.com", "http://localhost:*"}},
		"all":     {AllowedHosts: []string{"*"}, AllowedOrigins: []string{"*"}},
	}
	cases := []struct {
		options, host, origin string
		status                int
		names                 string // named by the rejection
	}{
		{"default", "localhost", "", 200, ""},
		{"default", "localhost:8080", "", 200, ""},
		{"default", "127.0.0.1:8080", "", 200, ""},
		{"default", "[::1]:8080", "", 200, ""},
		{"default", "[::1]", "", 200, ""},
		{"default", "evil.example.com", "", 403, "AllowedHosts"},
		{"default", "localhost.evil.example.com", "", 403, "AllowedHosts"},
		{"default", "localhost:80.evil.example.com", "", 403, "AllowedHosts"},
		{"default", "[localhost]", "", 403, "AllowedHosts"},
		{"default", "localhost:8080", "http://localhost:8080", 200, ""},
		{"default", "localhost:8080", "http://127.0.0.1:3000", 200, ""},
		{"default", "localhost:8080", "http://evil.example.com", 403, "AllowedOrigins"},
		{"default", "localhost:8080", "null", 403, "AllowedOrigins"},
		{"proxy", "mcp.example.com", "", 200, ""},
		{"proxy", "MCP.example.com:443", "", 200, ""},
		{"proxy", "other.example.com:8443", "", 200, ""},
		{"proxy", "other.example.com", "", 403, "AllowedHosts"},
		{"proxy", "mcp.example.com:443.evil.example.com", "", 403, "AllowedHosts"},
		{"proxy", "[2001:db8::1]:8443", "", 200, ""},
		{"proxy", "localhost", "", 200, ""},
		{"proxy", "mcp.example.com", "https://mcp.example.com", 200, ""},
		{"proxy", "mcp.example.com", "https://evil.example.com", 403, "AllowedOrigins"},
		{"origins", "localhost", "https://app.example.com", 200, ""},
		{"origins", "localhost", "https://app.example.com:444", 403, "AllowedOrigins"},
		{"origins", "localhost", "http://app.example.com", 403, "AllowedOrigins"},
		{"origins", "localhost", "https://app.example.com:443.evil.example.com", 403, "AllowedOrigins"},
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

// On an address that other machines can reach, a page is not trusted just because its origin
// is the Host of its request: the owner of a name can resolve it to the server's address.
// This applies to every name that is not listed, but not to IP addresses.
func TestGuardOffLoopback(t *testing.T) {
	lists := map[string]*mcphttp.Options{
		"default": {},
		"hosts":   {AllowedHosts: []string{"mcp.example.com"}},
		"origins": {AllowedOrigins: []string{"https://mcp.example.com"}},
	}
	cases := []struct {
		options, host, origin string
		status                int
		names                 string // named by the rejection
	}{
		{"default", "mcp.example.com", "", 200, ""}, // not a page
		{"default", "mcp.example.com", "https://mcp.example.com", 403, "AllowedHosts"},
		{"default", "evil.example.com:8080", "http://evil.example.com:8080", 403, "AllowedHosts"},
		{"default", "nas.local", "http://nas.local", 403, "AllowedHosts"},
		{"default", "127.0.0.1.evil.example.com", "http://127.0.0.1.evil.example.com", 403, "AllowedHosts"},
		{"default", "localhost:80.evil.example.com", "http://localhost:80.evil.example.com", 403, "AllowedOrigins"}, // not a URL
		{"default", "mcp.example.com", "https://evil.example.com", 403, "AllowedOrigins"},
		{"default", "192.168.1.5:8080", "http://192.168.1.5:8080", 200, ""},
		{"default", "192.168.1.5:8080", "http://192.168.1.5:3000", 403, "AllowedOrigins"},
		{"default", "[fd00::5]:8080", "http://[fd00::5]:8080", 200, ""},
		{"default", "localhost:8080", "http://localhost:8080", 200, ""}, // through a forwarded port
		{"hosts", "mcp.example.com", "https://mcp.example.com", 200, ""},
		{"hosts", "mcp.example.com:8443", "https://mcp.example.com:8443", 200, ""},
		{"hosts", "evil.example.com", "https://evil.example.com", 403, "AllowedHosts"},
		{"origins", "mcp.example.com", "https://mcp.example.com", 200, ""},
		{"origins", "localhost:8080", "http://localhost:8080", 200, ""},
		{"origins", "evil.example.com", "https://evil.example.com", 403, "AllowedOrigins"},
	}
	for _, c := range cases {
		t.Run(c.options+" "+c.host+" "+c.origin, func(t *testing.T) {
			opts := *lists[c.options]
			s := serve(t, newHandler(t, tools(), &opts)).listening(net.IPv4(192, 168, 1, 5))
			body, h := callModern("hello")
			res := whole(t, s.post(body, with(h, header{"Host": c.host, "Origin": c.origin})))
			if res.status != c.status || !strings.Contains(res.body, c.names) {
				t.Errorf("%d %s, want %d naming %q", res.status, res.body, c.status, c.names)
			}
		})
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"net"
	"net/http"
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

// A request with several Origins is refused, whichever of them is allowed.
func TestFindingY13DuplicateOrigin(t *testing.T) {
	for name, opts := range map[string]*mcphttp.Options{"default": {}, "all": {AllowedOrigins: []string{"*"}}} {
		for _, origins := range [][]string{
			{"http://localhost", "https://evil.example.com"}, {"https://evil.example.com", "http://localhost"}, {"http://localhost", "http://localhost"}, {"", "http://localhost"},
		} {
			s := serve(t, newHandler(t, tools(), opts))
			body, h := callModern("hello")
			r := s.request(t.Context(), http.MethodPost, body, h)
			r.Header["Origin"] = origins
			if res := whole(t, s.do(r)); res.status != http.StatusForbidden || !strings.Contains(res.body, "Origin appears 2 times") {
				t.Errorf("%s, %q: %d %s", name, origins, res.status, res.body)
			}
		}
	}
}

// The first label of an allowed host or origin may be "*", which stands for exactly one label.
func TestFindingRM13WildcardDomains(t *testing.T) {
	lists := map[string]*mcphttp.Options{
		"hosts":   {AllowedHosts: []string{"*.example.com", "*.example.org:8443", "*.example.net:*"}},
		"origins": {AllowedOrigins: []string{"https://*.example.com", "http://*.example.org:*"}},
	}
	for _, c := range []struct {
		options, host, origin string
		status                int
	}{
		{"hosts", "a.example.com", "", 200},
		{"hosts", "A-1.Example.COM:8443", "", 200},
		{"hosts", "a.example.com", "https://a.example.com", 200},
		{"hosts", "a.example.com", "https://b.example.com", 403},
		{"hosts", "a.example.org:8443", "", 200},
		{"hosts", "a.example.org", "", 403},
		{"hosts", "a.example.net:1", "", 200},
		{"hosts", "example.com", "", 403},
		{"hosts", ".example.com", "", 403},
		{"hosts", "a.b.example.com", "", 403},
		{"hosts", "evilexample.com", "", 403},
		{"hosts", "a.example.com.evil.net", "", 403},
		{"hosts", "a.example.com:80.evil.net", "", 403},
		{"origins", "localhost", "https://a.example.com", 200},
		{"origins", "localhost", "HTTPS://a.example.com", 200},
		{"origins", "localhost", "https://a.example.com:444", 403},
		{"origins", "localhost", "http://a.example.com", 403},
		{"origins", "localhost", "https://example.com", 403},
		{"origins", "localhost", "https://evil.com/.example.com", 403},
		{"origins", "localhost", "https://a@b.example.com", 403},
		{"origins", "localhost", "https://a.b.example.com", 403},
		{"origins", "localhost", "https://a.example.com.evil.net", 403},
		{"origins", "localhost", "https://", 403},
		{"origins", "localhost", "http", 403},
		{"origins", "localhost", "http://a.example.org:3000", 200},
	} {
		s := serve(t, newHandler(t, tools(), lists[c.options]))
		body, h := callModern("hello")
		if res := whole(t, s.post(body, with(h, header{"Host": c.host, "Origin": c.origin}))); res.status != c.status {
			t.Errorf("%s, host %s, origin %s: %d %s, want %d", c.options, c.host, c.origin, res.status, res.body, c.status)
		}
	}
}

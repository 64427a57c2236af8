// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp"
)

const app = "https://app.example.com"

// crossSite returns a server behind authentication that is used by a page of another origin.
func crossSite(t *testing.T) *site {
	t.Helper()
	authenticated := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				w.Header().Set("WWW-Authenticate", "Bearer")
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	return serve(t, mcphttp.CORS(app)(authenticated(newHandler(t, refusals(), nil))))
}

// T32: a page can read every response, including rejections.
func TestCORSOnEveryStatus(t *testing.T) {
	s := crossSite(t)
	page := header{"Origin": app, "Authorization": "Bearer x"}
	session := with(page, header{"Mcp-Session-Id": s.do(s.request(t.Context(), "POST", initialize("2025-11-25"), page)).Header.Get("Mcp-Session-Id")})
	body, modernHeader := callModern("scope")
	for _, c := range []struct {
		status       int
		method, body string
		header       header
	}{
		{200, "POST", call(1, "hello"), session},
		{202, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session},
		{400, "POST", "{", page},
		{401, "POST", call(1, "hello"), header{"Origin": app}},
		{403, "POST", body, with(modernHeader, page)},
		{404, "POST", call(1, "hello"), with(page, header{"Mcp-Session-Id": "unknown"})},
		{405, "DELETE", "", page},
	} {
		res := s.do(s.request(t.Context(), c.method, c.body, c.header))
		exposed := res.Header.Get("Access-Control-Expose-Headers")
		if res.StatusCode != c.status || res.Header.Get("Access-Control-Allow-Origin") != app || !strings.Contains(exposed, "Mcp-Session-Id") || !strings.Contains(exposed, "Www-Authenticate") {
			t.Errorf("%d, want %d, with %v", res.StatusCode, c.status, res.Header)
		}
		if !strings.Contains(strings.Join(res.Header["Vary"], ","), "Origin") {
			t.Errorf("%d: a cache is not told that it depends on the origin: %v", c.status, res.Header["Vary"])
		}
	}
}

// A preflight request needs no credentials, and headers chosen by tools are allowed.
func TestCORSPreflight(t *testing.T) {
	s := crossSite(t)
	asking := header{"Origin": app, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, mcp-param-region, mcp-protocol-version"}
	res := s.do(s.request(t.Context(), http.MethodOptions, "", asking))
	headers := strings.ToLower(res.Header.Get("Access-Control-Allow-Headers"))
	if res.StatusCode/100 != 2 || res.Header.Get("Access-Control-Allow-Origin") != app || !strings.Contains(headers, "mcp-param-region") || !strings.Contains(headers, "authorization") {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	if res.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("cookies are allowed")
	}
}

// Other origins are rejected, including those with similar names.
func TestCORSRefuses(t *testing.T) {
	s := crossSite(t)
	for _, origin := range []string{"https://evil.example", "null", "https://app.example.com.evil.example", "http://app.example.com", "https://app.example.com:444"} {
		res := s.post(initialize("2025-11-25"), header{"Origin": origin, "Authorization": "Bearer x"})
		if res.StatusCode != http.StatusForbidden || res.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", origin, res.StatusCode, res.Header)
		}
	}
}

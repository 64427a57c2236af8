// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// Tests of public advisories are named after them; docs/evidence/advisories.md lists them.
// The advisories in this file are about web pages that reach a server through its user's
// browser.

// launching returns a server that serves both transports and other routes, with a tool that
// counts its calls.
func launching(t *testing.T, opts *mcphttp.Options) (s *site, ran *atomic.Int64) {
	t.Helper()
	if opts == nil {
		opts = &mcphttp.Options{}
	}
	opts.Logger = quiet
	mux, ran := tools(), new(atomic.Int64)
	mux.Tool("launch", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		ran.Add(1)
		return mcp.TextResult("launched"), nil
	}))
	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{Options: opts})
	t.Cleanup(func() { shutDown(router) })
	return serve(t, router), ran
}

func shutDown(router *mcphttp.Router) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = router.Shutdown(ctx)
}

// at sends a request to one of the paths that launching serves.
func (s *site) at(method, path, body string, h header) reply {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 15*time.Second)
	s.t.Cleanup(cancel)
	r := s.request(ctx, method, body, h)
	r.URL.Path = path
	res := s.do(r)
	if method == http.MethodGet && res.StatusCode == http.StatusOK {
		return reply{status: res.StatusCode, header: res.Header} // a stream may not end
	}
	return whole(s.t, res)
}

// listening returns the same server at another address.
func (s *site) listening(ip net.IP) *site {
	return serve(s.t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.server.Handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: ip, Port: 80})))
	}))
}

// refuses sends every kind of request that a page can send, and checks that none calls a
// tool, opens a session, or has a response that the page can read.
func (s *site) refuses(page header) {
	s.t.Helper()
	launch, h := callModern("launch")
	discover, hd := modern("server/discover", "", "")
	for name, res := range map[string]reply{
		"a call":         s.at(http.MethodPost, "/mcp", launch, with(h, page)),
		"a legacy call":  s.at(http.MethodPost, "/mcp", call(1, "launch"), page),
		"discovery":      s.at(http.MethodPost, "/mcp", discover, with(hd, page)),
		"a handshake":    s.at(http.MethodPost, "/mcp", initialize(mcp.LegacyVersions()[0]), page),
		"a stream":       s.at(http.MethodGet, "/mcp", "", page),
		"an old stream":  s.at(http.MethodGet, "/sse", "", page),
		"an old message": s.at(http.MethodPost, "/sse", launch, page),
		"a DELETE":       s.at(http.MethodDelete, "/mcp", "", page),
	} {
		if res.status != http.StatusForbidden {
			s.t.Errorf("%s with %v: %d %s, want 403", name, page, res.status, res.body)
		}
		if got := res.header.Get("Mcp-Session-Id") + res.header.Get("Access-Control-Allow-Origin"); got != "" {
			s.t.Errorf("%s with %v: the page can read %q", name, page, got)
		}
	}
}

// launches checks that an allowed call is served.
func (s *site) launches(ran *atomic.Int64, h header) {
	s.t.Helper()
	before := ran.Load()
	body, hc := callModern("launch")
	if res := s.at(http.MethodPost, "/mcp", body, with(hc, h)); res.status != http.StatusOK || ran.Load() != before+1 {
		s.t.Errorf("with %v: %d %s, and %d calls", h, res.status, res.body, ran.Load()-before)
	}
}

// The TypeScript SDK did not check the Host of a request: a page whose name later resolved
// to 127.0.0.1 had the same origin as a local server.
func TestAdvisoryCVE_2025_66414(t *testing.T) {
	s, ran := launching(t, nil)
	s.refuses(header{"Host": "evil.example"})
	s.refuses(header{"Host": "evil.example:8080", "Origin": "http://evil.example:8080"})
	s.launches(ran, header{"Host": "localhost:8080"})
}

// The Python SDK did not check the Host either, on any of its transports. Names that
// resemble those of this machine are rejected, too.
func TestAdvisoryCVE_2025_66416(t *testing.T) {
	s, ran := launching(t, nil)
	for _, host := range []string{"localhost.evil.example", "127.0.0.1.evil.example", "evil.example.", "127.0.0.1@evil.example"} {
		s.refuses(header{"Host": host})
	}
	s.launches(ran, header{"Host": "127.0.0.1:8080"})
}

// The Go SDK did not check the Host either, and a server that listened on all addresses
// could be reached at the loopback address.
func TestAdvisoryCVE_2026_34742(t *testing.T) {
	here, ran := launching(t, nil)
	s := here.listening(net.IPv6loopback)
	s.refuses(header{"Host": "evil.example"})
	s.launches(ran, header{"Host": "[::1]:8080"})
}

// The Java SDK did not check the Origin: any page could call a local server by the server's
// own name.
func TestAdvisoryCVE_2026_35568(t *testing.T) {
	s, ran := launching(t, nil)
	for _, origin := range []string{"https://evil.example", "http://localhost.evil.example", "null", "file://", "http://127.0.0.1.evil.example"} {
		s.refuses(header{"Host": "localhost:8080", "Origin": origin})
	}
	s.launches(ran, header{"Host": "localhost:8080", "Origin": "http://localhost:8080"})
}

// The Rust SDK let a foreign page complete a whole conversation. Here an open session cannot
// be reached by another name either.
func TestAdvisoryCVE_2026_42559(t *testing.T) {
	s, ran := launching(t, nil)
	h := s.open("2025-11-25")
	s.refuses(with(h, header{"Host": "evil.example"}))
	if res := s.at(http.MethodPost, "/mcp", call(1, "launch"), h); res.status != http.StatusOK || ran.Load() != 1 {
		t.Errorf("in the session: %d %s", res.status, res.body)
	}
	for _, ip := range []net.IP{net.IPv4(192, 168, 1, 5), net.IPv4(10, 0, 0, 1), net.ParseIP("fd00::5"), net.IPv4(203, 0, 113, 7)} {
		far := s.listening(ip)
		far.refuses(header{"Host": "evil.example", "Origin": "http://evil.example"})
		far.refuses(with(h, header{"Host": "evil.example:8080", "Origin": "http://evil.example:8080"}))
		far.launches(ran, header{"Host": "mcp.example"}) // not a page
	}
}

// The Ruby SDK checked neither Host nor Origin, and gave a foreign page a usable session.
func TestAdvisoryCVE_2026_63118(t *testing.T) {
	s, ran := launching(t, nil)
	for _, version := range mcp.LegacyVersions() {
		for _, page := range []header{{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Host": "evil.example", "Origin": "https://other.example"}} {
			if res := s.at(http.MethodPost, "/mcp", initialize(version), page); res.status != http.StatusForbidden || res.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s with %v: %d %v", version, page, res.status, res.header)
			}
		}
	}
	s.launches(ran, nil)
}

// Foreign pages could reach Docker's gateway in its network modes. Forwarding headers added
// by a proxy make no difference.
func TestAdvisoryCVE_2025_64443(t *testing.T) {
	s, ran := launching(t, nil)
	s.refuses(header{"Host": "evil.example", "X-Forwarded-Host": "localhost", "Forwarded": "host=localhost", "X-Forwarded-For": "127.0.0.1"})
	s.launches(ran, nil)
}

// Foreign pages could reach the MCP Toolbox, too. With a list of hosts, other names are
// rejected, whatever address the server listens on.
func TestAdvisoryCVE_2026_9739(t *testing.T) {
	s, ran := launching(t, &mcphttp.Options{AllowedHosts: []string{"mcp.example"}})
	for _, s := range []*site{s, s.listening(net.IPv4(192, 0, 2, 1))} {
		for _, host := range []string{"evil.example", "mcp.example.evil.example", "evil-mcp.example", "xmcp.example"} {
			s.refuses(header{"Host": host, "Origin": "http://" + host})
		}
		s.launches(ran, header{"Host": "mcp.example"})
	}
}

// The Go SDK accepted a POST of any content type from any page: text/plain requires no
// preflight, so a page could call tools without being able to read the response.
func TestAdvisoryCVE_2026_33252(t *testing.T) {
	s, ran := launching(t, nil)
	body, h := callModern("launch")
	legacy := s.open("2025-11-25")
	for _, kind := range []string{"text/plain", "text/plain; charset=utf-8", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/jsonx", "text/plain; application/json"} {
		for name, res := range map[string]reply{
			"modern":             s.at(http.MethodPost, "/mcp", body, with(h, header{"Content-Type": kind})),
			"modern, no headers": s.at(http.MethodPost, "/mcp", body, header{"Content-Type": kind}),
			"legacy":             s.at(http.MethodPost, "/mcp", call(1, "launch"), with(legacy, header{"Content-Type": kind})),
			"handshake":          s.at(http.MethodPost, "/mcp", initialize("2025-11-25"), header{"Content-Type": kind}),
		} {
			if res.status != http.StatusUnsupportedMediaType || res.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s as %q: %d %s, want 415", name, kind, res.status, res.body)
			}
		}
		s.refuses(header{"Content-Type": kind, "Origin": "https://evil.example"})
	}
	if ran.Load() != 0 {
		t.Errorf("the tool ran %d times", ran.Load())
	}
	s.launches(ran, nil)
}

// The Java SDK let every page read its responses, including the session ID, which allowed
// the page to continue.
func TestAdvisoryCVE_2026_34237(t *testing.T) {
	s, _ := launching(t, nil)
	for _, origin := range []string{"https://evil.example", "http://localhost:3000", "null"} {
		body, h := callModern("launch")
		for name, res := range map[string]reply{
			"preflight":   s.at(http.MethodOptions, "/mcp", "", header{"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "mcp-session-id"}),
			"a handshake": s.at(http.MethodPost, "/mcp", initialize(mcp.LegacyVersions()[0]), header{"Origin": origin}),
			"a call":      s.at(http.MethodPost, "/mcp", body, with(h, header{"Origin": origin})),
			"an old POST": s.at(http.MethodPost, "/sse", "{}", header{"Origin": origin}),
		} {
			for key := range res.header {
				if strings.HasPrefix(key, "Access-Control-") {
					t.Errorf("%s for %s: %s: %s", name, origin, key, res.header.Get(key))
				}
			}
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/go-psi/psi/examples/login/provider"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/authserver"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// A browser fills in every form that it sees, until it is sent to the client.
type browser struct {
	user      string
	asked     int // how often for consent
	transport http.RoundTripper
}

const redirectURI = "http://127.0.0.1:7/callback"

var hidden = regexp.MustCompile(`name="token" value="([^"]*)"`)

func (b *browser) visit(_ context.Context, page string) (url.Values, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	var back url.Values
	client := &http.Client{Transport: b.transport, Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), redirectURI+"?") {
			back = r.URL.Query()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	res, err := client.Get(page)
	for range 2 { // consent, and the login at the provider
		if err != nil || back != nil {
			return back, err
		}
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, err
		}
		res.Body.Close()
		form, to := url.Values{"user": {b.user}}, *res.Request.URL
		if token := hidden.FindStringSubmatch(string(text)); token != nil {
			b.asked++
			to.Path, to.RawQuery = "/consent", ""
			form = url.Values{"token": {html.UnescapeString(token[1])}, "answer": {"allow"}}
		}
		if res, err = client.PostForm(to.String(), form); err != nil {
			return nil, err
		}
	}
	res.Body.Close()
	if back == nil {
		return nil, errors.New("the browser stays")
	}
	return back, nil
}

// start starts the server and its provider, and returns the server's URL.
func start(t *testing.T, names ...string) string {
	t.Helper()
	return mcptest.ServeFunc(t, func(base string) http.Handler { return newFront(t, base+"/mcp", names) }) + "/mcp"
}

func newFront(t *testing.T, resource string, names []string) http.Handler {
	t.Helper()
	h, err := newServer(resource, &authserver.Options{
		Provider: authserver.OIDC(mcptest.ServeFunc(t, provider.New), provider.ClientID, provider.ClientSecret),
		Scopes:   []string{"notes:read", "notes:write"}, Identify: only(byEmail, names),
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func connect(t *testing.T, resource string, b *browser) (*mcp.Conn, error) {
	t.Helper()
	login := oauth.NewTransport(resource, &oauth.Options{Base: b.transport, Grant: &oauth.AuthorizationCode{Redirector: oauth.NewRedirector(redirectURI, b.visit)}})
	t.Cleanup(func() { _ = login.Close() })
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(t.Context(), mcphttp.NewTransport(resource, &mcphttp.TransportOptions{Client: &http.Client{Transport: login}}))
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

func TestLogin(t *testing.T) {
	resource, ada := start(t, "ada@example.com"), &browser{user: "ada"}
	conn, err := connect(t, resource, ada)
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{"whoami": "ada@example.com", "write": "written"} {
		if got, err := mcp.Call[string](t.Context(), conn, tool, nil); got != want || err != nil {
			t.Errorf("%s returns %q, %v", tool, got, err)
		}
	}
	if ada.asked == 0 {
		t.Error("ada was not asked")
	}
	if _, err := connect(t, resource, &browser{user: "eve"}); err == nil {
		t.Error("eve comes in")
	}
}

// A proxy on the same machine sends the requests for a public name to a loopback address.
type proxy struct{ host, address string }

func (p proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == p.host {
		to := *r.URL
		to.Scheme, to.Host = "http", p.address
		out := r.WithContext(r.Context())
		out.URL, out.Host = &to, p.host
		res, err := http.DefaultTransport.RoundTrip(out)
		if res != nil {
			res.Request = r
		}
		return res, err
	}
	return http.DefaultTransport.RoundTrip(r)
}

// The server has a public name, as on the internet.
func TestPublicName(t *testing.T) {
	const resource = "https://notes.example.com/mcp"
	front := mcptest.Serve(t, newFront(t, resource, []string{"ada@example.com"}))
	ada := &browser{user: "ada", transport: proxy{"notes.example.com", strings.TrimPrefix(front, "http://")}}
	conn, err := connect(t, resource, ada)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := mcp.Call[string](t.Context(), conn, "whoami", nil); got != "ada@example.com" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// An address that the provider has not verified could be anybody's, and so could a claim that only
// GitHub has made unique.
func TestUnverified(t *testing.T) {
	for name, c := range map[string]struct {
		by     func(map[string]any) string
		claims map[string]any
		ok     bool
	}{
		"GitHub":      {byLogin, map[string]any{"sub": "1", "login": "octocat"}, true},
		"verified":    {byEmail, map[string]any{"sub": "1", "email": "ada@example.com", "email_verified": true}, true},
		"unverified":  {byEmail, map[string]any{"sub": "1", "email": "ada@example.com", "email_verified": false}, false},
		"text":        {byEmail, map[string]any{"sub": "1", "email": "ada@example.com", "email_verified": "true"}, false},
		"own claim":   {byEmail, map[string]any{"sub": "1", "login": "ada@example.com", "email": "eve@example.com", "email_verified": true}, false},
		"only claim":  {byEmail, map[string]any{"sub": "1", "login": "octocat"}, false},
		"its address": {byLogin, map[string]any{"sub": "1", "email": "ada@example.com", "email_verified": true}, false},
	} {
		identify := only(c.by, []string{"octocat", "ada@example.com", ""})
		if _, err := identify(t.Context(), c.claims); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

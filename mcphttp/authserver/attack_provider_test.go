// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// answering is a transport that gives one answer to the requests for a path, and sends the
// others on.
func answering(path string, status int, kind, body string) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path != path {
			return http.DefaultTransport.RoundTrip(r)
		}
		header := http.Header{"Content-Type": {kind}, "Location": {"/elsewhere"}}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})
}

// A provider that answers nonsense logs nobody in, and what it says reaches neither the
// client nor the log.
func TestWrongAnswersOfProviders(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		status int
		body   string
	}{
		"discovery: error": {"/.well-known/openid-configuration", 500, "hidden"}, "discovery: redirect": {"/.well-known/openid-configuration", 302, "{}"}, "discovery: no JSON": {"/.well-known/openid-configuration", 200, "hidden"},
		"discovery: too long": {"/.well-known/openid-configuration", 200, `{"x":"` + strings.Repeat("x", 1<<20) + `"}`},
		"token: error":        {"/token", 400, `{"error":"invalid_client","error_description":"hidden"}`}, "token: no JSON": {"/token", 200, "hidden"}, "token: redirect": {"/token", 307, "hidden"},
		"token: no ID token": {"/token", 200, `{"access_token":"hidden","token_type":"Bearer"}`}, "token: no token": {"/token", 200, `{"hidden":1}`},
		"token: another ID token": {"/token", 200, `{"access_token":"hidden","id_token":"hidden"}`}, "token: unsigned": {"/token", 200, `{"access_token":"hidden","id_token":"eyJhbGciOiJub25lIn0.eyJzdWIiOiJoaWRkZW4ifQ."}`},
		"token: too long": {"/token", 200, `{"access_token":"` + strings.Repeat("x", 64<<10+1) + `","token_type":"Bearer"}`},
	} {
		w := newWorld(t, func(o *authserver.Options) {
			o.Provider.Client = &http.Client{Transport: answering(c.path, c.status, "application/json", c.body)}
		})
		b := newBrowser(t)
		back := b.visit(w.link(w.register("app", appURI)))
		if back.Has("code") || back == nil && b.status/100 != 5 || strings.Contains(b.page, "hidden") {
			t.Errorf("%s: %v, status %d", name, back, b.status)
		}
		if text := w.logs.String(); text == "" || strings.Contains(text, "hidden") {
			t.Errorf("%s: log %q", name, text)
		}
	}
}

// A user without an ID that lasts is nobody.
func TestWrongUserInfo(t *testing.T) {
	for name, c := range map[string]struct {
		body, subject string // "" means that the login is denied
	}{
		"text": {`{"id":"x"}`, "x"}, "integer": {`{"id":4711}`, "4711"}, "negative": {`{"id":-1}`, "-1"}, "large": {`{"id":9007199254740991}`, "9007199254740991"},
		"too large": {`{"id":9007199254740992}`, ""}, "fraction": {`{"id":1.5}`, ""}, "missing": {`{"sub":"x"}`, ""}, "null": {`{"id":null}`, ""}, "empty": {`{"id":""}`, ""}, "list": {`{"id":["x"]}`, ""},
		"no object": {`[]`, ""}, "twice": {`{"id":1,"id":2}`, ""}, "no JSON": {``, ""},
	} {
		w := newWorld(t, func(o *authserver.Options) {
			p := authserver.GitHub("psi", "secret")
			base := o.Provider.Issuer
			p.AuthURL, p.TokenURL, p.UserInfoURL = base+"/auth", base+"/token", base+"/user"
			p.Client = &http.Client{Transport: answering("/user", 200, "application/json", c.body)}
			o.Provider = p
			o.Identify = func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
				if claims["sub"] != c.subject {
					t.Errorf("%s: subject %v", name, claims["sub"])
				}
				return &mcp.Principal{Subject: claims["sub"].(string)}, nil
			}
			if c.subject == "" {
				o.Identify = nil
			}
		})
		back := newBrowser(t).visit(w.link(w.register("app", appURI)))
		if (back.Get("code") != "") != (c.subject != "") {
			t.Errorf("%s: %v", name, back)
		}
	}
}

// A name that resolves to an address inside is not connected to, whoever controls it.
func TestDocumentNames(t *testing.T) {
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	var connections atomic.Int64
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			conn, err := inside.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			conn.Close()
		}
	}()
	var lookups atomic.Int64
	old := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go answerLookup(server, &lookups)
		return client, nil
	}}
	defer func() { net.DefaultResolver = old }()

	w := newWorld(t, func(o *authserver.Options) { o.Egress = nil })
	_, port, _ := net.SplitHostPort(inside.Addr().String())
	b := newBrowser(t)
	b.step(http.MethodGet, w.link("https://rebound.example:"+port+"/app.json"), nil)
	if b.status != http.StatusBadRequest || strings.Contains(b.page, "127.") || lookups.Load() == 0 {
		t.Errorf("status %d after %d lookups", b.status, lookups.Load())
	}
	inside.Close()
	<-accepted
	if connections.Load() != 0 || !strings.Contains(w.logs.String(), "not a public address") {
		t.Errorf("%d connections, log %s", connections.Load(), w.logs)
	}
}

// answerLookup answers one question of a resolver, over a stream, with 127.0.0.1.
func answerLookup(conn net.Conn, lookups *atomic.Int64) {
	defer conn.Close()
	buf := make([]byte, 4<<10)
	n, err := conn.Read(buf)
	if err != nil || n <= 2 {
		return
	}
	if n == 2 { // the length came alone
		n, err = conn.Read(buf[2:])
		n += 2
	}
	var m dnsmessage.Message
	if err != nil || m.Unpack(buf[2:n]) != nil {
		return
	}
	lookups.Add(1)
	m.Response, m.RCode, m.Additionals = true, dnsmessage.RCodeSuccess, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
	}
	packed, err := m.Pack()
	if err == nil {
		_, _ = conn.Write(append([]byte{byte(len(packed) >> 8), byte(len(packed))}, packed...))
	}
}

// More metadata documents that are none, and one with all that is allowed.
func TestDocumentBounds(t *testing.T) {
	id := "https://client.example/app.json"
	good := `{"client_id":"` + id + `","redirect_uris":["` + appURI + `"]`
	for name, c := range map[string]struct {
		status int
		kind   string
		body   string
		ok     bool
	}{
		"plain": {200, "application/json; charset=utf-8", good + `}`, true}, "suffix": {200, "application/cimd+json", good + `}`, true}, "none": {200, "application/json", good + `,"token_endpoint_auth_method":"none"}`, true},
		"32 KiB": {200, "application/json", good + `}` + strings.Repeat(" ", 32<<10-len(good)-1), true}, "longer": {200, "application/json", good + `}` + strings.Repeat(" ", 32<<10-len(good)), false},
		"a secret": {200, "application/json", good + `,"token_endpoint_auth_method":"client_secret_basic"}`, false}, "a key": {200, "application/json", good + `,"token_endpoint_auth_method":"private_key_jwt"}`, false},
		"not found": {404, "application/json", good + `}`, false}, "created": {201, "application/json", good + `}`, false}, "no JSON": {200, "application/json", good, false}, "text": {200, "text/json", good + `}`, false}, "no type": {200, "", good + `}`, false},
		"no ID": {200, "application/json", `{"redirect_uris":["` + appURI + `"]}`, false}, "no redirect": {200, "application/json", `{"client_id":"` + id + `"}`, false},
		"a wrong redirect": {200, "application/json", `{"client_id":"` + id + `","redirect_uris":["` + appURI + `","javascript:x"]}`, false}, "twice": {200, "application/json", good + `,"client_id":"` + id + `"}`, false},
	} {
		w := newWorld(t)
		w.egress = func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
		}
		b := newBrowser(t)
		if b.step(http.MethodGet, w.link(id), nil); (b.form() != "") != c.ok {
			t.Errorf("%s: status %d", name, b.status)
		}
	}
}

// No more than 64 documents are fetched at the same time, at one replica, and the requests that one
// address may make do not use them up.
func TestDocumentFlood(t *testing.T) {
	w := newWorld(t)
	started, finish := make(chan struct{}, 100), make(chan struct{})
	w.egress = func(*http.Request) (*http.Response, error) {
		started <- struct{}{}
		<-finish
		return nil, http.ErrServerClosed
	}
	visit := func(from int) int {
		r := httptest.NewRequest(http.MethodGet, w.link("https://client.example/app.json"), nil)
		r.RemoteAddr = "192.0.2." + string(rune('0'+from)) + ":1"
		rec := httptest.NewRecorder()
		w.replicas[0].ServeHTTP(rec, r)
		return rec.Code
	}
	done := make(chan int, 64)
	for i := range 64 {
		go func() { done <- visit(i / 50) }()
	}
	for range 64 {
		select {
		case <-started:
		case status := <-done:
			t.Fatalf("a fetch does not begin: status %d", status)
		}
	}
	for from := range 3 {
		if status := visit(from); status != http.StatusTooManyRequests {
			t.Errorf("one more of address %d: status %d", from, status)
		}
	}
	close(finish)
	for range 64 {
		if status := <-done; status != http.StatusBadRequest {
			t.Errorf("status %d", status)
		}
	}
	if status := visit(1); status != http.StatusBadRequest {
		t.Errorf("later: status %d", status)
	}
}

// A provider that redirects this server gets no request elsewhere: one would carry the secret
// and the user's code.
func TestRedirectingProvider(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, path := range []string{"/.well-known/openid-configuration", "/token", "/keys"} {
		w := newWorld(t, func(o *authserver.Options) {
			o.Provider.Client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path != path {
					return http.DefaultTransport.RoundTrip(r)
				}
				return &http.Response{StatusCode: http.StatusTemporaryRedirect, Header: http.Header{"Location": {other.URL}}, Body: http.NoBody, Request: r}, nil
			})}
		})
		if back := newBrowser(t).visit(w.link(w.register("app", appURI))); back.Has("code") || elsewhere.Load() != 0 {
			t.Errorf("%s: %v, %d requests elsewhere", path, back, elsewhere.Load())
		}
	}
}

// What is peculiar about each service is data.
func TestProviders(t *testing.T) {
	for name, c := range map[string]struct {
		got    *authserver.Provider
		issuer string
		scopes string
		params string
	}{
		"OIDC":     {authserver.OIDC("https://idp.example", "id", "secret"), "https://idp.example", "openid profile email", ""},
		"Google":   {authserver.Google("id", "secret"), "https://accounts.google.com", "openid profile email", "access_type=offline&prompt=consent"},
		"Entra":    {authserver.Entra("tenant", "id", "secret"), "https://login.microsoftonline.com/tenant/v2.0", "openid profile email offline_access", ""},
		"Okta":     {authserver.Okta("example.okta.com", "id", "secret"), "https://example.okta.com", "openid profile email offline_access", ""},
		"Auth0":    {authserver.Auth0("example.eu.auth0.com", "id", "secret"), "https://example.eu.auth0.com/", "openid profile email offline_access", ""},
		"Cognito":  {authserver.Cognito("eu-west-1", "eu-west-1_Example", "id", "secret"), "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Example", "openid profile email", ""},
		"Keycloak": {authserver.Keycloak("https://sso.example/", "my realm", "id", "secret"), "https://sso.example/realms/my%20realm", "openid profile email", ""},
		"GitHub":   {authserver.GitHub("id", "secret"), "", "", ""},
	} {
		params := url.Values{}
		for name, value := range c.got.AuthParams {
			params.Set(name, value)
		}
		if c.got.Issuer != c.issuer || strings.Join(c.got.Scopes, " ") != c.scopes || params.Encode() != c.params || c.got.ClientID != "id" || c.got.ClientSecret != "secret" {
			t.Errorf("%s: %+v", name, c.got)
		}
		if _, err := authserver.New("https://mcp.example.com/mcp", &authserver.Options{Provider: c.got}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A provider gets the parameters that it wants.
func TestAuthParams(t *testing.T) {
	w := newWorld(t, func(o *authserver.Options) { o.Provider.AuthParams = map[string]string{"access_type": "offline"} })
	b := newBrowser(t)
	b.step(http.MethodGet, w.link(w.register("app", appURI)), nil)
	to := b.step(http.MethodPost, w.url+"/consent", url.Values{"token": {b.form()}, "answer": {"allow"}})
	if q := to.Query(); q.Get("access_type") != "offline" || q.Get("nonce") == "" || q.Get("code_challenge_method") != "S256" || q.Get("scope") != "openid profile email" {
		t.Errorf("%v", to)
	}
}

// Only a URL without anything that could be read in two ways is a document's.
func TestDocumentIDs(t *testing.T) {
	w := newWorld(t)
	var fetched []string
	w.egress = func(r *http.Request) (*http.Response, error) {
		fetched = append(fetched, r.URL.String())
		return nil, http.ErrServerClosed
	}
	base := "https://client.example/"
	for id, ok := range map[string]bool{
		base + "a": true, base + "a/b.json": true, "https://client.example:8443/a": true, base + "%20": true, base + strings.Repeat("x", 512-len(base)): true,
		base: false, "https://client.example": false, base + "a?b": false, base + "a#b": false, base + "a/./b": false, base + "a/../b": false, base + "a//b": false, base + strings.Repeat("x", 513-len(base)): false,
		"http://client.example/a": false, "https://u@client.example/a": false, "https://localhost/a": false, "https://x.localhost/a": false, "https://127.0.0.1/a": false, "https://0x7f000001/a": false, "https://client.example./a": false, "HTTPS://client.example/a": false,
	} {
		fetched = nil
		if newBrowser(t).step(http.MethodGet, w.link(id), nil); (len(fetched) == 1 && fetched[0] == id) != ok {
			t.Errorf("%q: fetched %q", id, fetched)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// Authorize gets one token, reports errors, and does not retry forever.
func TestAuthorizeBounds(t *testing.T) {
	w := newWorld(t)
	w.login.refresh = "r"
	rt := w.transport(nil)
	for range 2 {
		if err := rt.Authorize(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantAuthorizations(1)
	}
	w = newWorld(t)
	w.login.refresh, w.login.lifetime = "r", 1e-9 // every token has expired when it arrives
	rt = w.transport(nil)
	if err := rt.Authorize(t.Context()); err != nil {
		t.Error(err)
	}
	if err := rt.Authorize(t.Context()); !errors.Is(err, mcp.ErrUnauthorized) || !strings.Contains(err.Error(), "has expired when it arrives") {
		t.Errorf("with tokens that have expired: %v", err)
	}
	w.wantAuthorizations(1)
	w.wantRefreshes(6)
	w = newWorld(t)
	w.login.metadata["token_endpoint"] = ""
	if err := w.transport(nil).Authorize(t.Context()); !errors.Is(err, oauth.ErrMetadata) {
		t.Errorf("without a token endpoint: %v", err)
	}
	w = newWorld(t)
	w.server.url = "http://mcp.example/mcp"
	if err := w.transport(nil).Authorize(t.Context()); !errors.Is(err, oauth.ErrUnsafeURL) || !errors.Is(err, mcp.ErrUnauthorized) || w.asked("") != 0 {
		t.Errorf("without TLS: %v", err)
	}
	w = newWorld(t)
	rt = w.transport(nil)
	rt.Close()
	if err := rt.Authorize(t.Context()); err == nil || !strings.Contains(err.Error(), "the transport is closed") {
		t.Errorf("after Close: %v", err)
	}
}

// An expired token that cannot be refreshed is sent, and the server decides. If the
// request's context ends meanwhile, it is not sent.
func TestExpiredTokenBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, rt := refreshing(t)
		<-time.After(2 * time.Hour)
		w.login.token = func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.WriteHeader(http.StatusInternalServerError)
			return true
		}
		w.mustPost(rt, "", served)
		ctx, cancel := context.WithCancel(t.Context())
		w.login.token = func(rw http.ResponseWriter, _ *http.Request) bool {
			cancel()
			<-time.After(1)
			rw.WriteHeader(http.StatusInternalServerError)
			return true
		}
		before := w.asked("POST " + serverURL)
		if got, err := post(ctx, rt, "", "hello"); !errors.Is(err, context.Canceled) || !errors.Is(err, mcp.ErrUnauthorized) || w.asked("POST "+serverURL) != before {
			t.Errorf("%q, %v, %d requests", got, err, w.asked("POST "+serverURL)-before)
		}
		<-time.After(2)
	})
}

// A refreshed token keeps what the response omits: its refresh token and its scopes.
func TestRefreshKeeps(t *testing.T) {
	for _, silent := range []bool{false, true} {
		w := newWorld(t)
		w.login.refresh = "r"
		w.server.challenge = `Bearer scope="read"`
		rt := w.transport(nil)
		w.mustPost(rt, "", served)
		w.login.answers = func(_ url.Values, answer map[string]any) {
			if silent {
				delete(answer, "refresh_token")
				delete(answer, "scope")
				w.login.refresh = "r+"
			} else {
				answer["scope"] = "read write"
			}
		}
		for range 2 {
			w.login.revoke()
			w.mustPost(rt, "", served)
		}
		w.wantRefreshes(2)
		// A scope that the token has is not requested again, whatever the server says.
		w.mustPost(rt, "write", map[bool]string{true: served, false: "403"}[silent])
		w.wantAuthorizations(map[bool]int{true: 2, false: 1}[silent])
	}
}

// Metadata requests carry the revision of the request that causes them.
func TestRevisionOfMetadata(t *testing.T) {
	for _, revision := range []string{"", "2025-03-26"} {
		w := newWorld(t)
		for at, next := range w.hosts {
			w.hosts[at] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if got := r.Header.Values("Mcp-Protocol-Version"); strings.HasPrefix(r.URL.Path, "/.well-known/") && strings.Join(got, ",") != revision {
					t.Errorf("%s has the revision %q, want %q", r.URL, got, revision)
				}
				next.ServeHTTP(rw, r)
			})
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serverURL, strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if revision != "" {
			req.Header.Set("Mcp-Protocol-Version", revision)
		}
		res, err := w.transport(nil).RoundTrip(req)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%v, %v", res, err)
		}
	}
}

// addressed is a connection to a given address.
type addressed struct {
	net.Conn
	at string
}

func (c addressed) RemoteAddr() net.Addr { return c }
func (c addressed) Network() string      { return "tcp" }
func (c addressed) String() string       { return c.at }

// A server may name authorization servers that are as near to the client as the server's own
// address, unless that address belongs to a proxy.
func TestReachBounds(t *testing.T) {
	for _, test := range []struct {
		name, found, issuer string
		allowed             bool
	}{
		{"mcp.example:443", "127.0.0.1:443", "https://127.0.0.2", true},
		{"mcp.example:443", "127.0.0.1:443", "https://10.0.0.2", true},
		{"mcp.example:443", "127.0.0.1:443", "https://169.254.0.2", false},
		{"mcp.example:443", "10.0.0.1:443", "https://10.0.0.2", true},
		{"mcp.example:443", "10.0.0.1:443", "https://127.0.0.2", false},
		{"mcp.example:443", "169.254.0.1:443", "https://169.254.0.2", true},
		{"mcp.example:443", "169.254.0.1:443", "https://10.0.0.2", false},
		{"mcp.example:443", "93.184.216.34:443", "https://10.0.0.2", false},
		{"MCP.example:443", "10.0.0.1:443", "https://10.0.0.2", true},
		{"proxy.example:443", "10.0.0.1:443", "https://10.0.0.2", false},
		{"mcp.example:443", "somewhere", "https://10.0.0.2", false},
	} {
		w := newWorld(t)
		near := newIssuer(test.issuer)
		w.hosts[test.issuer], w.server.issuer = near, near
		w.server.metadata["authorization_servers"] = []string{test.issuer}
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
				trace.GetConn(test.name)
				trace.GotConn(httptrace.GotConnInfo{Conn: addressed{at: test.found}})
			}
			return w.RoundTrip(req)
		})
		got, err := post(t.Context(), w.transport(&oauth.Options{Base: base}), "", "hello")
		if (err == nil && got == served) != test.allowed || err != nil && !errors.Is(err, oauth.ErrUnsafeURL) {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}

// A refused scope is requested again after five minutes, however often it is needed
// meanwhile. If more than three sets of scopes were refused in that time, no other is
// requested.
func TestFutileScopeBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.login.lifetime = nil
		rt := w.transport(nil)
		w.mustPost(rt, "", served)
		w.login.redirect = func(params url.Values) { params.Set("error", "access_denied") }
		refused := func(scope string, asked bool) {
			t.Helper()
			before := len(w.login.authorizations())
			got, err := post(t.Context(), rt, scope, "hello")
			if n := len(w.login.authorizations()) - before; asked && (n != 1 || err == nil) || !asked && (n != 0 || got != "403") {
				t.Errorf("%s: asked %d times, %q, %v", scope, n, got, err)
			}
		}
		refused("admin", true)
		for range 5 {
			<-time.After(time.Minute)
			refused("admin", false)
		}
		<-time.After(1)
		refused("admin", true)
		for i := range 3 {
			refused(fmt.Sprint("more-", i), true)
		}
		refused("another", false)
		<-time.After(5*time.Minute + 1)
		refused("another", true)
	})
}

// After a new token was rejected, none is requested for a minute.
func TestPauseBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.login.lifetime = nil
		rt := w.transport(nil)
		w.server.deny = true
		w.mustPost(rt, "", "401")
		for range 3 {
			w.mustPost(rt, "", "401")
		}
		<-time.After(time.Minute - 1)
		w.mustPost(rt, "", "401")
		w.wantAuthorizations(1)
		w.server.deny = false
		<-time.After(1)
		w.login.revoke()
		w.mustPost(rt, "", served)
		w.wantAuthorizations(2)
	})
}

// A grant that works without a user is used whenever it helps: it requests no refresh token,
// and gets a new token before the old one expires, even to end a session. Of several
// authorization servers, it prefers its own.
func TestSilentGrants(t *testing.T) {
	client := oauth.Client{Issuer: loginURL, ID: "id"}
	for name, grant := range map[string]oauth.Grant{
		"client":   &oauth.ClientCredentials{Client: client},
		"workload": &oauth.WorkloadIdentity{Issuer: loginURL, Assertion: func(context.Context, oauth.AuthorizationServer) (string, error) { return "jwt", nil }},
		"enterprise": &oauth.EnterpriseGrant{Client: client, Provider: oauth.IdentityProvider{Issuer: "https://idp.corp"},
			Subject: func(context.Context) (oauth.SubjectToken, error) { return oauth.SubjectToken{Token: "t"}, nil }},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.provider("urn:ietf:params:oauth:token-type:id-jag")
			w.server.metadata["authorization_servers"] = []string{"https://first.example", loginURL}
			w.server.metadata["scopes_supported"] = []string{"read"}
			w.login.metadata["scopes_supported"] = []string{"offline_access"}
			rt := w.transport(&oauth.Options{Grant: grant})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, serverURL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res, err := rt.RoundTrip(req); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("%s: DELETE: %v, %v", name, res, err)
			}
			<-time.After(2 * time.Hour)
			w.mustPost(rt, "", served)
			if n := w.asked("POST " + serverURL); n != 1 {
				t.Errorf("%s: %d requests, want 1 with a new token", name, n)
			}
			for _, g := range w.login.granted("") {
				if got := g.form.Get("scope"); got != "read" {
					t.Errorf("%s: scope %q", name, got)
				}
			}
			rt.Close()
		})
	}
}

// If there are no scopes to request, requests have no scope parameter.
func TestNoScopes(t *testing.T) {
	w := newWorld(t)
	asked := w.provider("urn:ietf:params:oauth:token-type:id-jag")
	w.mustPost(w.transport(nil), "", served)
	w.store = oauth.NewMemoryStore()
	grant := &oauth.EnterpriseGrant{Client: oauth.Client{Issuer: loginURL, ID: "id"}, Provider: oauth.IdentityProvider{Issuer: "https://idp.corp"},
		Subject: func(context.Context) (oauth.SubjectToken, error) { return oauth.SubjectToken{Token: "t"}, nil }}
	w.mustPost(w.transport(&oauth.Options{Grant: grant}), "", served)
	for _, form := range append(*asked, w.login.authorizations()[0], w.login.granted("")[0].form, w.login.granted("")[1].form) {
		if form.Has("scope") {
			t.Errorf("%v has a scope", form)
		}
	}
	if len(*asked) != 1 {
		t.Errorf("%d exchanges, want 1", len(*asked))
	}
}

// opened counts open redirects.
type opened struct {
	oauth.Redirector
	n, most int
}

func (o *opened) Open(ctx context.Context, registered string) (oauth.Redirect, error) {
	o.n++
	o.most = max(o.most, o.n)
	r, err := o.Redirector.Open(ctx, registered)
	return closedBy{r, o}, err
}

type closedBy struct {
	oauth.Redirect
	o *opened
}

func (c closedBy) Close() error { c.o.n--; return c.Redirect.Close() }

// A redirect is closed, however the authorization ends.
func TestRedirectIsClosed(t *testing.T) {
	for name, setup := range map[string]func(w *world){
		"authorized": func(*world) {},
		"refused":    func(w *world) { w.login.redirect = func(params url.Values) { params.Set("error", "access_denied") } },
		"no client":  func(w *world) { w.login.metadata["registration_endpoint"] = "" },
	} {
		w := newWorld(t)
		setup(w)
		o := &opened{Redirector: w.receiver}
		_, _ = post(t.Context(), w.transport(&oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: o}}), "", "hello")
		if o.n != 0 || o.most != 1 {
			t.Errorf("%s: %d redirects are open, of %d", name, o.n, o.most)
		}
	}
}

// A token remains bound to its key, even if the server now asks for Bearer tokens and the
// supported algorithms are not listed.
func TestBoundTokenStaysBound(t *testing.T) {
	b := newBound(t)
	delete(b.login.metadata, "dpop_signing_alg_values_supported")
	rt := b.transport(nil)
	b.mustPost(rt, "", served)
	b.server.challenge = "Bearer"
	b.login.revoke()
	b.mustPost(rt, "", served)
	if len(b.thumbs) != 1 {
		t.Errorf("%d keys, want 1", len(b.thumbs))
	}
	b.wantAuthorizations(2)
}

// If both Bearer and DPoP are offered, Bearer is used unless DPoP is required. The type of a
// token may be missing, and is case-insensitive.
func TestBearerTypes(t *testing.T) {
	for _, kind := range []string{"", "bearer", "BEARER"} {
		w := newWorld(t)
		w.server.challenge = `DPoP algs="ES256", Bearer`
		w.login.answers = func(_ url.Values, answer map[string]any) { answer["token_type"] = kind }
		w.mustPost(w.transport(nil), "", served)
	}
}

// Nonces are kept for the last eight origins that sent one.
func TestNoncesOfOrigins(t *testing.T) {
	w := newWorld(t)
	requests := map[string]int{}
	use := func(rt *oauth.Transport, at string, want int) {
		t.Helper()
		as := w.hosts[at].(*issuer)
		as.revoke()
		w.server.issuer, w.server.metadata["authorization_servers"] = as, []string{at}
		requests[at] = 0
		w.mustPost(rt, "", served)
		if requests[at] != want {
			t.Errorf("%s: %d token requests, want %d", at, requests[at], want)
		}
	}
	w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "DPoP ", "Bearer ", 1))
		w.server.ServeHTTP(rw, r)
	})
	at := func(i int) string { return fmt.Sprintf("https://as%d.example", i) }
	for i := range 9 {
		as := newIssuer(at(i))
		as.answers = func(_ url.Values, answer map[string]any) { answer["token_type"] = "DPoP" }
		as.token = func(rw http.ResponseWriter, r *http.Request) bool {
			requests[as.url]++
			if _, claims := verified(t, r.Header.Get("DPoP"), nil); claims["nonce"] == as.url {
				return false
			}
			rw.Header().Set("DPoP-Nonce", as.url)
			writeJSON(rw, 400, map[string]any{"error": "use_dpop_nonce"})
			return true
		}
		w.hosts[as.url] = as
	}
	rt := w.transport(&oauth.Options{DPoP: new(oauth.Key)})
	for i := range 8 {
		use(rt, at(i), 2)
	}
	use(rt, at(0), 1)
	use(rt, at(8), 2) // replaces the second
	use(rt, at(2), 1)
	use(rt, at(1), 2)
}

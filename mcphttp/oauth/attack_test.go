// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// attacks are worlds with an attacker. No attacker may get a code, a token or a secret, and
// the request must fail for the right reason.
func attacks() map[string]struct {
	arrange func(w *world)
	reason  error
	reaches string // prefix of the requests that are allowed; "" for no authorization at all
} {
	type attack = struct {
		arrange func(w *world)
		reason  error
		reaches string
	}
	const authorize, token = "GET https://login.example/authorize", "POST https://login.example/token"
	asMetadata := func(name string, value any) func(w *world) {
		return func(w *world) { w.login.metadata[name] = value }
	}
	redirect := func(change func(params url.Values)) func(w *world) {
		return func(w *world) { w.login.redirect = change }
	}
	set := func(name, value string) func(w *world) {
		return redirect(func(params url.Values) { params.Set(name, value) })
	}
	named := func(issuer string) func(w *world) {
		return func(w *world) { w.server.metadata["authorization_servers"] = []string{issuer} }
	}
	resource := func(id string) func(w *world) {
		return func(w *world) { w.server.metadata["resource"] = id }
	}
	advertised := func(place string) func(w *world) {
		return func(w *world) { w.server.metadata, w.server.challenge = nil, `Bearer resource_metadata="`+place+`"` }
	}
	return map[string]attack{
		"mix-up: iss of another":   {set("iss", "https://evil.example"), oauth.ErrIssuer, authorize},
		"mix-up: iss with a slash": {set("iss", loginURL+"/"), oauth.ErrIssuer, authorize},
		"mix-up: iss in capitals":  {set("iss", strings.ToUpper(loginURL)), oauth.ErrIssuer, authorize},
		"mix-up: iss is missing":   {redirect(func(p url.Values) { p.Del("iss") }), oauth.ErrIssuer, authorize},
		"mix-up: iss is empty":     {set("iss", ""), oauth.ErrIssuer, authorize},
		"mix-up: two of iss":       {redirect(func(p url.Values) { p.Add("iss", "https://evil.example") }), oauth.ErrState, authorize},
		"mix-up: unexpected iss": {func(w *world) {
			asMetadata("authorization_response_iss_parameter_supported", false)(w)
			set("iss", "https://evil.example")(w)
		}, oauth.ErrIssuer, authorize},
		"state of another flow":         {set("state", "another"), oauth.ErrState, authorize},
		"state is missing":              {redirect(func(p url.Values) { p.Del("state") }), oauth.ErrState, authorize},
		"two of state":                  {redirect(func(p url.Values) { p.Add("state", "another") }), oauth.ErrState, authorize},
		"two codes":                     {redirect(func(p url.Values) { p.Add("code", "another") }), oauth.ErrState, authorize},
		"no code":                       {redirect(func(p url.Values) { p.Del("code") }), oauth.ErrState, authorize},
		"resource of another host":      {resource("https://other.example/mcp"), oauth.ErrResource, ""},
		"resource of another port":      {resource("https://mcp.example:444/mcp"), oauth.ErrResource, ""},
		"resource of another path":      {resource("https://mcp.example/other"), oauth.ErrResource, ""},
		"resource of a longer path":     {resource("https://mcp.example/mcp/more"), oauth.ErrResource, ""},
		"resource with a like prefix":   {resource("https://mcp.example/mc"), oauth.ErrResource, ""},
		"resource with another scheme":  {resource("http://mcp.example/mcp"), oauth.ErrResource, ""},
		"resource with a fragment":      {resource("https://mcp.example/mcp#x"), oauth.ErrResource, ""},
		"resource with a user":          {resource("https://mcp.example@other.example/mcp"), oauth.ErrResource, ""},
		"resource is missing":           {func(w *world) { delete(w.server.metadata, "resource") }, oauth.ErrResource, ""},
		"metadata of another issuer":    {asMetadata("issuer", "https://evil.example"), oauth.ErrIssuer, ""},
		"issuer with a path":            {asMetadata("issuer", loginURL+"/t1/"), oauth.ErrIssuer, ""},
		"issuer is missing":             {asMetadata("issuer", nil), oauth.ErrIssuer, ""},
		"issuer in the clear":           {named("http://login.example"), oauth.ErrUnsafeURL, ""},
		"issuer on this machine":        {named("https://localhost"), oauth.ErrUnsafeURL, ""},
		"issuer on loopback":            {named("http://127.0.0.1:1234"), oauth.ErrUnsafeURL, ""},
		"issuer on loopback, IPv6":      {named("https://[::1]"), oauth.ErrUnsafeURL, ""},
		"issuer on loopback, mapped":    {named("https://[::ffff:127.0.0.1]"), oauth.ErrUnsafeURL, ""},
		"issuer at a private address":   {named("https://10.1.2.3"), oauth.ErrUnsafeURL, ""},
		"issuer at a unique local one":  {named("https://[fd00::1]"), oauth.ErrUnsafeURL, ""},
		"issuer with cloud metadata":    {named("https://169.254.169.254"), oauth.ErrUnsafeURL, ""},
		"issuer is nowhere":             {named("https://0.0.0.0"), oauth.ErrUnsafeURL, ""},
		"issuer is a script":            {named("javascript:alert(1)"), oauth.ErrUnsafeURL, ""},
		"issuer is a file":              {named("file:///etc/passwd"), oauth.ErrUnsafeURL, ""},
		"issuer with a query":           {named(loginURL + "?x=1"), oauth.ErrUnsafeURL, ""},
		"issuer with a user":            {named("https://login.example@evil.example"), oauth.ErrUnsafeURL, ""},
		"no issuer":                     {func(w *world) { w.server.metadata["authorization_servers"] = []string{} }, oauth.ErrMetadata, ""},
		"metadata in the clear":         {advertised(`http://mcp.example/m`), oauth.ErrUnsafeURL, ""},
		"metadata at a private address": {advertised(`https://192.168.0.1/m`), oauth.ErrUnsafeURL, ""},
		"metadata at a script":          {advertised(`javascript:alert(1)`), oauth.ErrUnsafeURL, ""},
		"authorization by a script":     {asMetadata("authorization_endpoint", "javascript:alert(1)//https://login.example"), oauth.ErrUnsafeURL, ""},
		"authorization by data":         {asMetadata("authorization_endpoint", "data:text/html,x"), oauth.ErrUnsafeURL, ""},
		"authorization by a file":       {asMetadata("authorization_endpoint", "file:///etc/passwd"), oauth.ErrUnsafeURL, ""},
		"authorization by an option":    {asMetadata("authorization_endpoint", "--help"), oauth.ErrUnsafeURL, ""},
		"authorization in the clear":    {asMetadata("authorization_endpoint", "http://login.example/authorize"), oauth.ErrUnsafeURL, ""},
		"authorization on this machine": {asMetadata("authorization_endpoint", "http://localhost:631/"), oauth.ErrUnsafeURL, ""},
		"no PKCE":                       {asMetadata("code_challenge_methods_supported", nil), oauth.ErrMetadata, ""},
		"plain PKCE":                    {asMetadata("code_challenge_methods_supported", []string{"plain"}), oauth.ErrMetadata, ""},
		"registration in the clear":     {asMetadata("registration_endpoint", "http://login.example/register"), oauth.ErrUnsafeURL, ""},
		"registration in private":       {asMetadata("registration_endpoint", "https://172.16.0.1/register"), oauth.ErrUnsafeURL, ""},
		"token endpoint in the clear":   {asMetadata("token_endpoint", "http://login.example/token"), oauth.ErrUnsafeURL, authorize},
		"token endpoint in private":     {asMetadata("token_endpoint", "https://10.0.0.1/token"), oauth.ErrUnsafeURL, authorize},
		"token endpoint redirects within": {func(w *world) {
			w.login.token = func(rw http.ResponseWriter, r *http.Request) bool {
				http.Redirect(rw, r, "/elsewhere", http.StatusTemporaryRedirect)
				return true
			}
		}, oauth.ErrUnsafeURL, token},
		"token endpoint redirects": {func(w *world) {
			w.login.token = func(rw http.ResponseWriter, r *http.Request) bool {
				http.Redirect(rw, r, "https://evil.example/token", http.StatusTemporaryRedirect)
				return true
			}
		}, oauth.ErrUnsafeURL, token},
	}
}

func TestAttacks(t *testing.T) {
	for name, attack := range attacks() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, evil := range []string{"https://evil.example", "https://other.example", "https://10.1.2.3", "https://10.0.0.1", "https://localhost", "http://login.example", "https://169.254.169.254"} {
				w.hosts[evil] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s was asked", evil) })
			}
			attack.arrange(w)
			rt := w.transport(nil)
			got, err := post(t.Context(), rt, "", "hello")
			if !errors.Is(err, attack.reason) || !errors.Is(err, mcp.ErrUnauthorized) {
				t.Fatalf("%q, %v; want %v", got, err, attack.reason)
			}
			if n := len(w.login.granted("authorization_code")); n != 0 && attack.reaches != "POST https://login.example/token" {
				t.Errorf("%d token requests", n)
			}
			if attack.reaches == "" && len(w.login.authorizations()) != 0 {
				t.Error("the user was asked")
			}
			if attack.reaches != "" && w.asked(attack.reaches) != 1 {
				t.Errorf("%d of %q, want 1: the attack was not made", w.asked(attack.reaches), attack.reaches)
			}
		})
	}
}

// A code of another flow, even with the right state, is useless without that flow's
// verifier.
func TestCodeInjection(t *testing.T) {
	w := newWorld(t)
	w.mustPost(w.transport(nil), "", served) // a victim's flow, code-1
	w.login.redirect = func(params url.Values) { params.Set("code", "code-1") }
	w.store = oauth.NewMemoryStore()
	var refusal *oauth.Error
	_, err := post(t.Context(), w.transport(nil), "", "hello")
	if !errors.As(err, &refusal) || refusal.Code != "invalid_grant" {
		t.Errorf("%v, want invalid_grant", err)
	}
}

// An error in a redirect is ignored until its sender has been verified.
func TestErrorOfStranger(t *testing.T) {
	w := newWorld(t)
	w.login.redirect = func(params url.Values) {
		params.Set("iss", "https://evil.example")
		params.Set("error", "server_error")
		params.Set("error_description", "call 555-1234")
	}
	_, err := post(t.Context(), w.transport(nil), "", "hello")
	var refusal *oauth.Error
	if !errors.Is(err, oauth.ErrIssuer) || errors.As(err, &refusal) || strings.Contains(err.Error(), "555") {
		t.Errorf("%v", err)
	}
}

// If the server redirects a request with a token, the token is sent only to a path below
// that of the server.
func TestRedirectOfServer(t *testing.T) {
	for name, test := range map[string]struct {
		to    string
		token bool
	}{
		"another host":                  {"https://evil.example/mcp", false},
		"another scheme":                {"http://mcp.example/mcp", false},
		"another port":                  {"https://mcp.example:8443/mcp", false},
		"another resource of this host": {"https://mcp.example/other", false},
		"a like resource of this host":  {"https://mcp.example/mcp2", false},
		"by dots":                       {"https://mcp.example/mcp/%2e%2e/other", false},
		"below":                         {"https://mcp.example/mcp/below", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			rt := w.transport(nil)
			w.mustPost(rt, "", served)
			var got string
			arrived := false
			elsewhere := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				arrived, got = true, r.Header.Get("Authorization")
			})
			w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/mcp" {
					http.Redirect(rw, r, test.to, http.StatusTemporaryRedirect)
					return
				}
				elsewhere(rw, r)
			})
			if origin(test.to) != origin(serverURL) {
				w.hosts[origin(test.to)] = elsewhere
			}
			res, err := (&http.Client{Transport: rt}).Post(serverURL, "text/plain", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if !arrived || (got != "") != test.token {
				t.Errorf("arrived: %v, with %q; want a token: %v", arrived, got, test.token)
			}
		})
	}
}

// Endless metadata is not read to its end.
func TestLongMetadata(t *testing.T) {
	for _, at := range []string{"https://mcp.example/.well-known/oauth-protected-resource/mcp", "https://login.example/.well-known/oauth-authorization-server", "https://login.example/token", "https://login.example/register"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			endless := &counter{}
			next := w.hosts[origin(at)]
			w.hosts[origin(at)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { next.ServeHTTP(rw, r) })
			long := roundTripper(func(req *http.Request) (*http.Response, error) {
				if req.URL.String() == at {
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: endless, Request: req}, nil
				}
				return w.RoundTrip(req)
			})
			rt := w.transport(&oauth.Options{Base: long, Egress: long})
			w.mustFail(rt, oauth.ErrMetadata)
			if endless.read > 2<<20 {
				t.Errorf("%d bytes were read", endless.read)
			}
			if !endless.closed {
				t.Error("the body was not closed")
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// counter is an endless JSON document.
type counter struct {
	read   int
	closed bool
}

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '['
	}
	c.read += len(p)
	if c.read > 100<<20 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

func (c *counter) Close() error { c.closed = true; return nil }

// Redirects of metadata requests stay within their origin, and are limited.
func TestRedirectOfMetadata(t *testing.T) {
	for name, test := range map[string]struct {
		to     func(hop int) string
		status int
		reason error
	}{
		"within":      {func(int) string { return "https://mcp.example/.well-known/oauth-protected-resource/mcp" }, 302, nil},
		"to another":  {func(int) string { return "https://evil.example/" }, 302, oauth.ErrUnsafeURL},
		"to private":  {func(int) string { return "https://10.0.0.1/" }, 307, oauth.ErrUnsafeURL},
		"to plain":    {func(int) string { return "http://mcp.example/m" }, 301, oauth.ErrUnsafeURL},
		"for ever":    {func(hop int) string { return fmt.Sprintf("https://mcp.example/hop?%d", hop) }, 302, oauth.ErrUnsafeURL},
		"to a script": {func(int) string { return "javascript:alert(1)" }, 302, oauth.ErrUnsafeURL},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.server.challenge = `Bearer resource_metadata="https://mcp.example/hop"`
			hops := 0
			w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/hop" {
					hops++
					rw.Header().Set("Location", test.to(hops))
					rw.WriteHeader(test.status)
					return
				}
				w.server.ServeHTTP(rw, r)
			})
			rt := w.transport(nil)
			if test.reason == nil {
				w.mustPost(rt, "", served)
				return
			}
			w.server.metadata = nil // at the well-known URLs
			w.mustFail(rt, test.reason)
			if name == "for ever" && hops != 4 {
				t.Errorf("%d hops", hops)
			}
		})
	}
}

// If the server moves to another authorization server, the new one gets nothing from the old
// one (no client, secret or token), and vice versa.
func TestMigration(t *testing.T) {
	w := newWorld(t)
	w.login.refresh = "r"
	w.login.register = func(map[string]any) (int, map[string]any) {
		return 201, map[string]any{"client_id": "old-client", "client_secret": "old-secret", "token_endpoint_auth_method": "client_secret_post"}
	}
	rt := w.transport(nil)
	w.mustPost(rt, "old-scope", served)
	next := newIssuer("https://next.example")
	w.hosts["https://next.example"] = next
	w.server.metadata["authorization_servers"] = []string{"https://next.example"}
	w.server.issuer = next
	w.mustPost(rt, "", served)
	for _, q := range append(next.authorizations(), next.granted("")[0].form) {
		if text := q.Encode(); strings.Contains(text, "old-") || strings.Contains(text, "refresh_token=") {
			t.Errorf("the new authorization server was sent %s", text)
		}
	}
	if len(next.clients) != 1 {
		t.Errorf("%d registrations at the new one, want 1", len(next.clients))
	}
}

// Credentials for one authorization server are not sent to another.
func TestCredentialsOfAnother(t *testing.T) {
	client := oauth.Client{Issuer: "https://partner.example", ID: "id", Secret: "secret"}
	assert := func(context.Context, oauth.AuthorizationServer) (string, error) {
		t.Error("an assertion was made")
		return "jwt", nil
	}
	for name, grant := range map[string]oauth.Grant{
		"code":     &oauth.AuthorizationCode{Clients: []oauth.Client{client}, NoRegistration: true, Redirector: oauth.NewRedirector("https://app.example/", unused)},
		"client":   &oauth.ClientCredentials{Client: client},
		"workload": &oauth.WorkloadIdentity{Issuer: client.Issuer, Assertion: assert},
		"enterprise": &oauth.EnterpriseGrant{Client: client, Subject: func(context.Context) (oauth.SubjectToken, error) {
			t.Error("a subject token was fetched")
			return oauth.SubjectToken{}, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mustFail(w.transport(&oauth.Options{Grant: grant}), oauth.ErrIssuer)
			if n := w.asked("POST https://login.example/"); n != 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A client without an issuer stays with the first authorization server.
func TestFirstIssuer(t *testing.T) {
	w := newWorld(t)
	grant := &oauth.AuthorizationCode{Redirector: w.receiver, Clients: []oauth.Client{{ID: "id"}}, NoRegistration: true}
	rt := w.transport(&oauth.Options{Grant: grant})
	w.mustPost(rt, "", served)
	next := newIssuer("https://next.example")
	w.hosts["https://next.example"] = next
	w.server.metadata["authorization_servers"] = []string{"https://next.example"}
	w.server.issuer = next
	w.mustFail(rt, oauth.ErrIssuer)
	if len(next.authorizations()) != 0 || w.asked("POST https://next.example") != 0 {
		t.Error("another authorization server was asked")
	}
}

// A client with a secret or key is not used at an authorization server just because the MCP
// server names it: nothing is sent until an issuer is configured.
func TestSecretWithoutIssuer(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]oauth.Client{
		"secret": {ID: "nightly-report", Secret: "client-secret"},
		"key":    {ID: "nightly-report", Key: &oauth.Key{Signer: key}},
		"both":   {ID: "nightly-report", Secret: "client-secret", Key: &oauth.Key{Signer: key}, Method: "none"},
	} {
		for kind, grant := range map[string]oauth.Grant{
			"code":   &oauth.AuthorizationCode{Clients: []oauth.Client{{Issuer: loginURL, ID: "id", Secret: "s"}, client}},
			"client": &oauth.ClientCredentials{Client: client},
			"enterprise": &oauth.EnterpriseGrant{Client: client, Subject: func(context.Context) (oauth.SubjectToken, error) {
				return oauth.SubjectToken{}, errors.New("not reached")
			}},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				w := newWorld(t)
				rt := w.transport(&oauth.Options{Grant: grant})
				w.mustFail(rt, oauth.ErrIssuer)
				w.mustFail(rt, mcp.ErrUnauthorized)
				err := rt.Authorize(t.Context())
				if !errors.Is(err, oauth.ErrIssuer) || !strings.Contains(err.Error(), `"nightly-report"`) || !strings.Contains(err.Error(), "Client.Issuer") || strings.Contains(err.Error(), "client-secret") {
					t.Errorf("the error is %v", err)
				}
				if n := w.asked(""); n != 0 {
					t.Errorf("%d requests", n)
				}
			})
		}
	}
}

// A token that cannot be sent in a header is rejected.
func TestTokenWithNewline(t *testing.T) {
	for _, access := range []string{"", "a\r\nX-Evil: 1", "a b", "ü", strings.Repeat("x", 1<<17)} {
		w := newWorld(t)
		w.login.answers = func(_ url.Values, answer map[string]any) { answer["access_token"] = access }
		w.mustFail(w.transport(nil), mcp.ErrUnauthorized)
	}
}

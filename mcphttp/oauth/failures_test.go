// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// failingKey is a key held outside the process that signs n times and then fails.
type failingKey struct {
	crypto.Signer
	n int
}

func (k *failingKey) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if k.n--; k.n < 0 {
		return nil, errors.New("the key is unplugged")
	}
	return k.Signer.Sign(random, digest, opts)
}

func newKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// closedRedirector cannot open a redirect.
type closedRedirector struct{}

func (closedRedirector) Open(context.Context, string) (oauth.Redirect, error) {
	return nil, errors.New("oauth: there is no browser")
}

// If anything fails while a token is obtained, the request fails with an error that names
// the cause, and the MCP server gets no token.
func TestFailureSaysWhy(t *testing.T) {
	client := func(c oauth.Client) oauth.Options {
		c.Issuer = loginURL
		return oauth.Options{Grant: &oauth.ClientCredentials{Client: c}}
	}
	enterprise := func(p oauth.IdentityProvider, subject error) oauth.Options {
		return oauth.Options{Grant: &oauth.EnterpriseGrant{
			Provider: p, Client: oauth.Client{Issuer: loginURL, ID: "id"},
			Subject: func(context.Context) (oauth.SubjectToken, error) { return oauth.SubjectToken{Token: "t"}, subject },
		}}
	}
	only := func(methods ...string) func(w *world) {
		return func(w *world) { w.login.metadata["token_endpoint_auth_methods_supported"] = methods }
	}
	metadata := func(name string, value any) func(w *world) {
		return func(w *world) { w.login.metadata[name] = value }
	}
	token := func(status int, answer any) func(w *world) {
		return func(w *world) {
			w.login.token = func(rw http.ResponseWriter, _ *http.Request) bool { writeJSON(rw, status, answer); return true }
		}
	}
	// old turns the server into one of revision 2025-03-26, with or without its own
	// metadata.
	old := func(status int, metadata map[string]any) func(w *world) {
		return func(w *world) {
			w.server.metadata, w.server.challenge = nil, "Bearer"
			w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/.well-known/oauth-authorization-server" {
					writeJSON(rw, status, metadata)
					return
				}
				w.server.ServeHTTP(rw, r)
			})
		}
	}
	for name, test := range map[string]struct {
		opts  oauth.Options
		setup func(w *world)
		want  string
	}{
		"an unknown method of authentication": {opts: client(oauth.Client{ID: "id", Secret: "s", Method: "magic"}), want: `unknown method of authentication "magic"`},
		"no common method":                    {client(oauth.Client{ID: "id", Key: &oauth.Key{Signer: newKey(t, elliptic.P256())}}), only("client_secret_basic"), `authenticate by none of ["client_secret_basic"]`},
		"a secret, and no method for it":      {client(oauth.Client{ID: "id", Secret: "s"}), only("private_key_jwt"), `authenticate by none of ["private_key_jwt"]`},
		"a key, and no method for it":         {client(oauth.Client{ID: "id", Key: &oauth.Key{Signer: newKey(t, elliptic.P256())}}), only("none"), `authenticate by none of ["none"]`},
		"a curve that JWTs do not have":       {client(oauth.Client{ID: "id", Key: &oauth.Key{Signer: newKey(t, elliptic.P224())}}), only("private_key_jwt"), "neither RSA, ECDSA nor Ed25519"},
		"an identifier that is no text":       {client(oauth.Client{ID: "\xff", Key: &oauth.Key{Signer: newKey(t, elliptic.P256())}}), only("private_key_jwt"), "UTF-8"},
		"a key that does not sign":            {client(oauth.Client{ID: "id", Key: &oauth.Key{Signer: &failingKey{Signer: newKey(t, elliptic.P256())}}}), only("private_key_jwt"), "the key is unplugged"},
		"no DPoP key":                         {opts: oauth.Options{DPoP: &oauth.Key{ID: "k"}}, want: "neither RSA, ECDSA nor Ed25519"},
		"a DPoP key that does not sign":       {opts: oauth.Options{DPoP: &oauth.Key{Signer: &failingKey{Signer: newKey(t, elliptic.P256())}}}, want: "the key is unplugged"},
		"a DPoP key that signs once": {oauth.Options{DPoP: &oauth.Key{Signer: &failingKey{newKey(t, elliptic.P256()), 1}}}, func(w *world) {
			w.login.answers = func(_ url.Values, answer map[string]any) { answer["token_type"] = "DPoP" }
		}, "the key is unplugged"},
		"no redirect":                          {opts: oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: closedRedirector{}}}, want: "oauth: there is no browser"},
		"a name that is no text":               {opts: oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: oauth.NewRedirector("https://app.example/cb", unused), Registration: oauth.Registration{Name: "\xff"}}}, want: "UTF-8"},
		"no PKCE":                              {setup: metadata("code_challenge_methods_supported", nil), want: "does not promise PKCE"},
		"no token endpoint":                    {setup: metadata("token_endpoint", ""), want: `"https://login.example" has no token_endpoint`},
		"a malformed token endpoint":           {setup: metadata("token_endpoint", "https://["), want: `"https://[" is malformed`},
		"a malformed token endpoint, and DPoP": {opts: oauth.Options{DPoP: new(oauth.Key)}, setup: metadata("token_endpoint", "https://["), want: `"https://[" is malformed`},
		"a token endpoint of no host":          {setup: metadata("token_endpoint", "https://nowhere.example/token"), want: "no such host: https://nowhere.example"},
		"a malformed authorization endpoint":   {setup: metadata("authorization_endpoint", "https://["), want: "authorization_endpoint: "},
		"no authorization server":              {setup: func(w *world) { w.server.metadata["authorization_servers"] = []string{} }, want: "the server names no authorization server"},
		"an authorization server that is down": {setup: func(w *world) { delete(w.hosts, loginURL) }, want: "no such host: https://login.example"},
		"an authorization server without metadata": {setup: func(w *world) { w.hosts[loginURL] = http.NotFoundHandler() },
			want: `authorization server "https://login.example" has none`},
		"an issuer with a query": {setup: func(w *world) { w.server.metadata["authorization_servers"] = []string{loginURL + "?a=b"} }, want: "has a query"},
		"a redirect to nowhere": {setup: func(w *world) {
			w.hosts[loginURL] = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotModified) })
		}, want: "answered with status 304"},
		"an old server whose metadata fails":   {setup: old(500, nil), want: `"https://mcp.example/.well-known/oauth-authorization-server" answered with status 500`},
		"an old server with foreign metadata":  {setup: old(200, map[string]any{"issuer": loginURL, "token_endpoint": "x"}), want: `the metadata of "https://mcp.example" says that it is of "https://login.example"`},
		"an old server without token endpoint": {setup: old(200, map[string]any{"issuer": "https://mcp.example"}), want: `"https://mcp.example" has no token_endpoint`},
		"a token response that is no object":   {setup: token(200, []string{}), want: `token response of "https://login.example" is not what RFC 6749 wants`},
		"a token response without a token":     {setup: token(200, map[string]any{}), want: "no usable access_token"},
		"a token response that is an error":    {setup: token(200, map[string]any{"access_token": "t", "error": "slow_down"}), want: `refused: "slow_down"`},
		"a token of another type":              {setup: token(200, map[string]any{"access_token": "t", "token_type": "mac"}), want: `gave a token of type "mac", want Bearer`},
		"a token of another type, and DPoP":    {opts: oauth.Options{DPoP: new(oauth.Key)}, setup: token(200, map[string]any{"access_token": "t", "token_type": "Bearer"}), want: `gave a token of type "Bearer", want DPoP`},
		"a refusal of the token, described":    {setup: token(418, map[string]any{"error": "teapot", "error_description": "short and stout"}), want: `authorization server "https://login.example" refused: "teapot" ("short and stout")`},
		"a refusal without a code":             {setup: token(503, map[string]any{}), want: `"https://login.example" answered with status 503`},
		"a refused registration": {setup: func(w *world) {
			w.login.register = func(map[string]any) (int, map[string]any) { return 400, map[string]any{"error": "bad_name"} }
		}, want: `registration: oauth: the authorization server "https://login.example" refused: "bad_name"`},
		"a registration that is an error": {setup: func(w *world) {
			w.login.register = func(map[string]any) (int, map[string]any) {
				return 201, map[string]any{"client_id": "c", "error": "bad_name"}
			}
		}, want: `refused: "bad_name"`},
		"a registration without client_id": {setup: func(w *world) {
			w.login.register = func(map[string]any) (int, map[string]any) { return 201, map[string]any{} }
		}, want: `registration response of "https://login.example" is not what RFC 7591 wants`},
		"no registrations":                        {setup: metadata("registration_endpoint", ""), want: "does not accept registrations"},
		"a registration elsewhere":                {setup: metadata("registration_endpoint", "https://nowhere.example/register"), want: "registration: oauth: no such host"},
		"a subject that is logged out":            {opts: enterprise(oauth.IdentityProvider{TokenEndpoint: "https://idp.corp/token"}, errors.New("logged out")), want: "identity provider: logged out"},
		"an identity provider that is down":       {opts: enterprise(oauth.IdentityProvider{TokenEndpoint: "https://idp.corp/token"}, nil), want: "identity provider: oauth: no such host: https://idp.corp"},
		"an identity provider that is not found":  {opts: enterprise(oauth.IdentityProvider{Issuer: "https://idp.corp"}, nil), want: "identity provider: oauth: no such host: https://idp.corp"},
		"an identity provider that is not known":  {opts: enterprise(oauth.IdentityProvider{}, nil), want: "neither Issuer nor TokenEndpoint is configured"},
		"another ID-JAG":                          {enterprise(oauth.IdentityProvider{Issuer: "https://idp.corp"}, nil), func(w *world) { w.provider("other") }, `issued a token of type "other"`},
		"a redirect that names a parameter twice": {setup: func(w *world) { w.login.redirect = func(q url.Values) { q.Add("code", "2") } }, want: `"code" more than once`},
		"a redirect without a code":               {setup: func(w *world) { w.login.redirect = func(q url.Values) { q.Del("code") } }, want: "it has no code"},
		"a redirect with an error": {setup: func(w *world) {
			w.login.redirect = func(q url.Values) { q.Set("error", "access_denied"); q.Set("error_description", "not today") }
		}, want: `refused: "access_denied" ("not today")`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if test.setup != nil {
				test.setup(w)
			}
			got, err := post(t.Context(), w.transport(&test.opts), "", "hello")
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "oauth: ") || w.seen(origin(serverURL), "") {
				t.Errorf("%q, %v, want an error with %s", got, err, test.want)
			}
			if !errors.Is(err, mcp.ErrUnauthorized) && !strings.Contains(test.want, "unplugged") {
				t.Errorf("%v does not wrap ErrUnauthorized", err)
			}
		})
	}
}

// Errors do not contain the query of an endpoint, which may be secret.
func TestErrorsWithoutQuery(t *testing.T) {
	for status, why := range map[int]string{http.StatusFound: "redirects", http.StatusNotModified: "status 304"} {
		w := newWorld(t)
		w.login.metadata["token_endpoint"] = loginURL + "/token?key=secret"
		w.login.token = func(rw http.ResponseWriter, _ *http.Request) bool {
			if status == http.StatusFound {
				rw.Header().Set("Location", "/elsewhere?key=secret")
			}
			rw.WriteHeader(status)
			return true
		}
		_, err := post(t.Context(), w.transport(nil), "", "hello")
		if err == nil || !strings.Contains(err.Error(), `"`+loginURL+`/token" `) || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// keeping is a store from which no value can be removed.
type keeping struct{ oauth.Store }

func (k keeping) Save(ctx context.Context, key oauth.StoreKey, value []byte) error {
	if value == nil {
		return errors.New("kept")
	}
	return k.Store.Save(ctx, key, value)
}

// Problems that do not fail a request are logged.
func TestWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		setup func(w *world)
		want  string // "" for no warning
	}{
		"nothing":                {func(*world) {}, ""},
		"tokens not saved":       {func(w *world) { w.store = broken{} }, "the token is not remembered"},
		"tokens not read":        {func(w *world) { w.store = broken{} }, "the stored token cannot be read"},
		"registration not read":  {func(w *world) { w.store = broken{} }, "the stored registration cannot be read"},
		"registration not saved": {func(w *world) { w.store = broken{} }, "the registration is not remembered"},
		"registration not removed": {func(w *world) {
			w.store = keeping{w.store}
			w.login.token = func(rw http.ResponseWriter, _ *http.Request) bool {
				writeJSON(rw, 401, map[string]any{"error": "invalid_client"})
				return true
			}
		}, "the stored registration cannot be removed"},
		"registration removed": {func(w *world) {
			w.login.token = func(rw http.ResponseWriter, _ *http.Request) bool {
				writeJSON(rw, 401, map[string]any{"error": "invalid_client"})
				return true
			}
		}, "oauth: not authorized"},
		"refused": {func(w *world) { w.login.metadata["token_endpoint"] = "" }, "oauth: not authorized"},
		"panic":   {func(w *world) { w.login.redirect = func(url.Values) { panic("bug") } }, `level=ERROR msg="oauth: panic while getting a token" panic=bug`},
		"a redirect from nowhere": {func(w *world) {
			w.login.noIss = true
			delete(w.login.metadata, "authorization_response_iss_parameter_supported")
			w.login.metadata["authorization_endpoint"] = "https://pages.example/authorize"
			w.hosts["https://pages.example"] = w.login
		}, "the redirect does not name the authorization server"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.setup(w)
			var log strings.Builder
			_, _ = post(t.Context(), w.transport(&oauth.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}), "", "hello")
			got := log.String()
			_, works := w.store.(*oauth.MemoryStore)
			unwanted := test.want == "" && got != "" || works && strings.Contains(got, "registration cannot be")
			if unwanted || !strings.Contains(got, test.want) {
				t.Errorf("logged %s, want %q", got, test.want)
			}
		})
	}
}

// Obtaining a token is logged, without the token.
func TestLogOfAuthorization(t *testing.T) {
	w := newWorld(t)
	w.server.challenge = `Bearer scope="a b"`
	var log strings.Builder
	w.mustPost(w.transport(&oauth.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), "", served)
	if got := log.String(); !strings.Contains(got, `msg="oauth: authorized" server=https://mcp.example/mcp issuer=https://login.example scopes="a b"`) || strings.Contains(got, "#1") {
		t.Errorf("logged %s", got)
	}
}

// unused is a function for a Redirector that is never called.
func unused(context.Context, string) (url.Values, error) { return nil, errors.ErrUnsupported }

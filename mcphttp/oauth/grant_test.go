// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// verified verifies the signature of a JWT and returns its header and claims.
func verified(t *testing.T, token string, key crypto.PublicKey) (header jose.Header, claims map[string]any) {
	t.Helper()
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256, jose.ES384, jose.RS256, jose.PS256, jose.EdDSA})
	if err != nil {
		t.Fatalf("%q: %v", token, err)
	}
	header = jws.Signatures[0].Header
	if key == nil {
		key = header.JSONWebKey.Key
	}
	payload, err := jws.Verify(key)
	if err != nil {
		t.Fatalf("%q: %v", token, err)
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return header, claims
}

func TestClientSecret(t *testing.T) {
	for name, test := range map[string]struct {
		methods any
		method  string
		basic   string
		form    string // expected client_secret
	}{
		"basic":           {[]string{"client_secret_post", "client_secret_basic"}, "", "id+%2B:s%3A+%25", ""},
		"by default":      {nil, "", "id+%2B:s%3A+%25", ""},
		"post":            {[]string{"client_secret_post"}, "", ":", "s: %"},
		"post, by option": {[]string{"client_secret_basic"}, "client_secret_post", ":", "s: %"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.server.challenge = `Bearer scope="a"`
			w.login.metadata["token_endpoint_auth_methods_supported"] = test.methods
			grant := &oauth.ClientCredentials{Client: oauth.Client{Issuer: loginURL, ID: "id +", Secret: "s: %", Method: test.method}}
			w.mustPost(w.transport(&oauth.Options{Grant: grant}), "", served)
			g := w.login.granted("client_credentials")
			if len(g) != 1 || g[0].basic != test.basic || g[0].form.Get("client_secret") != test.form {
				t.Fatalf("token requests: %v", g)
			}
			if g[0].form.Get("resource") != serverURL || g[0].form.Get("scope") != "a" {
				t.Errorf("token request: %v", g[0].form)
			}
		})
	}
}

// A program without a user gets new tokens and scopes silently.
func TestClientCredentialsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rt := w.transport(&oauth.Options{Grant: &oauth.ClientCredentials{Client: oauth.Client{Issuer: loginURL, ID: "id", Secret: "s"}}})
		w.login.metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
		w.mustPost(rt, "", served)
		w.mustPost(rt, "write", served)
		<-time.After(2 * time.Hour)
		w.mustPost(rt, "write", served)
		if n := w.asked("POST " + serverURL); n != 5 {
			t.Errorf("%d requests to the server, want 5", n)
		}
		if n := len(w.login.granted("client_credentials")); n != 3 {
			t.Errorf("%d token requests, want 3", n)
		}
	})
}

func TestClientKey(t *testing.T) {
	p256, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	for name, test := range map[string]struct {
		key      oauth.Key
		accepted []string
		audience string
		want     string // expected algorithm; "" for an error
	}{
		"P-256":           {key: oauth.Key{Signer: p256, ID: "k1"}, want: "ES256"},
		"P-384":           {key: oauth.Key{Signer: p384}, want: "ES384"},
		"RSA":             {key: oauth.Key{Signer: rsaKey}, want: "RS256"},
		"RSA as accepted": {key: oauth.Key{Signer: rsaKey}, accepted: []string{"ES256", "PS256"}, want: "PS256"},
		"RSA as told":     {key: oauth.Key{Signer: rsaKey, Algorithm: "PS256"}, want: "PS256"},
		"Ed25519":         {key: oauth.Key{Signer: edKey}, want: "EdDSA"},
		"hardware":        {key: oauth.Key{Signer: opaque{p256}}, want: "ES256"},
		"audience":        {key: oauth.Key{Signer: p256}, audience: loginURL + "/token", want: "ES256"},
		"wrong algorithm": {key: oauth.Key{Signer: p256, Algorithm: "HS256"}},
		"no key":          {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.login.metadata["token_endpoint_auth_methods_supported"] = []string{"private_key_jwt", "client_secret_basic"}
			w.login.metadata["token_endpoint_auth_signing_alg_values_supported"] = test.accepted
			grant := &oauth.ClientCredentials{Client: oauth.Client{Issuer: loginURL, ID: "id", Key: &test.key, Audience: test.audience}}
			got, err := post(t.Context(), w.transport(&oauth.Options{Grant: grant}), "", "hello")
			if test.want == "" {
				if err == nil {
					t.Errorf("%q, want an error", got)
				}
				return
			}
			if err != nil || got != served {
				t.Fatalf("%q, %v", got, err)
			}
			form := w.login.granted("client_credentials")[0].form
			if form.Has("client_id") || form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" {
				t.Errorf("token request: %v", form)
			}
			header, claims := verified(t, form.Get("client_assertion"), test.key.Signer.Public())
			want := test.audience
			if want == "" {
				want = loginURL
			}
			if header.Algorithm != test.want || header.KeyID != test.key.ID || claims["iss"] != "id" || claims["sub"] != "id" || claims["aud"] != want || claims["jti"] == "" {
				t.Errorf("assertion: %v %v", header, claims)
			}
			if life := claims["exp"].(float64) - claims["iat"].(float64); life <= 0 || life > 300 {
				t.Errorf("the assertion lives for %v s", life)
			}
		})
	}
}

// opaque is a key that can only sign.
type opaque struct{ crypto.Signer }

func TestWorkloadIdentity(t *testing.T) {
	w := newWorld(t)
	var to oauth.AuthorizationServer
	grant := &oauth.WorkloadIdentity{Issuer: loginURL, Assertion: func(_ context.Context, as oauth.AuthorizationServer) (string, error) {
		to = as
		return "platform-jwt", nil
	}}
	rt := w.transport(&oauth.Options{Grant: grant})
	w.mustPost(rt, "", served)
	g := w.login.granted("urn:ietf:params:oauth:grant-type:jwt-bearer")
	if len(g) != 1 || g[0].form.Get("assertion") != "platform-jwt" || g[0].form.Has("client_id") || g[0].form.Has("scope") || g[0].form.Get("resource") != serverURL {
		t.Errorf("token requests: %v", g)
	}
	if to.Issuer != loginURL || to.TokenEndpoint != loginURL+"/token" {
		t.Errorf("asked for a JWT for %v", to)
	}
	// A rejected JWT is not sent twice.
	w.login.revoke()
	w.login.token = func(rw http.ResponseWriter, _ *http.Request) bool {
		writeJSON(rw, 400, map[string]any{"error": "invalid_grant"})
		return true
	}
	var refusal *oauth.Error
	if _, err := post(t.Context(), rt, "", "hello"); !errors.As(err, &refusal) || refusal.Code != "invalid_grant" {
		t.Errorf("%v", err)
	}
	if n := len(w.login.granted("")); n != 2 {
		t.Errorf("%d token requests, want 2", n)
	}
	w = newWorld(t)
	failed := errors.New("no metadata service")
	grant = &oauth.WorkloadIdentity{Assertion: func(context.Context, oauth.AuthorizationServer) (string, error) { return "", failed }}
	w.mustFail(w.transport(&oauth.Options{Grant: grant}), failed)
}

// provider adds the identity provider of an enterprise.
func (w *world) provider(issued string) *[]url.Values {
	var asked []url.Values
	w.hosts["https://idp.corp"] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/openid-configuration" {
			writeJSON(rw, 200, map[string]any{"issuer": "https://idp.corp", "token_endpoint": "https://idp.corp/token"})
			return
		}
		if r.URL.Path != "/token" {
			http.NotFound(rw, r)
			return
		}
		r.ParseForm()
		asked = append(asked, r.PostForm)
		writeJSON(rw, 200, map[string]any{"access_token": "id-jag", "issued_token_type": issued, "token_type": "N_A", "expires_in": 300})
	})
	return &asked
}

func TestEnterprise(t *testing.T) {
	const jag = "urn:ietf:params:oauth:token-type:id-jag"
	subject := func(context.Context) (oauth.SubjectToken, error) { return oauth.SubjectToken{Token: "id-token"}, nil }
	for name, test := range map[string]struct {
		provider oauth.IdentityProvider
		issued   string
		ok       bool
	}{
		"endpoint":      {oauth.IdentityProvider{TokenEndpoint: "https://idp.corp/token", Client: oauth.Client{ID: "at-idp"}}, jag, true},
		"issuer":        {oauth.IdentityProvider{Issuer: "https://idp.corp", Client: oauth.Client{ID: "at-idp"}}, jag, true},
		"neither":       {oauth.IdentityProvider{}, jag, false},
		"another token": {oauth.IdentityProvider{Issuer: "https://idp.corp", Client: oauth.Client{ID: "at-idp"}}, "urn:ietf:params:oauth:token-type:access_token", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			asked := w.provider(test.issued)
			w.server.challenge = `Bearer scope="a b"`
			w.login.metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
			grant := &oauth.EnterpriseGrant{Provider: test.provider, Subject: subject, Client: oauth.Client{Issuer: loginURL, ID: "at-as", Secret: "s"}}
			got, err := post(t.Context(), w.transport(&oauth.Options{Grant: grant}), "", "hello")
			if !test.ok {
				if err == nil || len(w.login.granted("")) != 0 {
					t.Errorf("%q, %d token requests; want an error", got, len(w.login.granted("")))
				}
				return
			}
			if err != nil || got != served || len(*asked) != 1 {
				t.Fatalf("%q, %v", got, err)
			}
			for name, want := range map[string]string{
				"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "requested_token_type": jag, "audience": loginURL, "resource": serverURL,
				"subject_token": "id-token", "subject_token_type": "urn:ietf:params:oauth:token-type:id_token", "client_id": "at-idp", "scope": "a b",
			} {
				if got := (*asked)[0].Get(name); got != want {
					t.Errorf("exchange: %s is %q, want %q", name, got, want)
				}
			}
			g := w.login.granted("urn:ietf:params:oauth:grant-type:jwt-bearer")
			if len(g) != 1 || g[0].form.Get("assertion") != "id-jag" || g[0].basic != "at-as:s" {
				t.Errorf("token requests: %v", g)
			}
		})
	}
}

// Without a provider's issuer, the audience of assertions is the provider's token endpoint.
func TestEnterpriseKey(t *testing.T) {
	w := newWorld(t)
	asked := w.provider("urn:ietf:params:oauth:token-type:id-jag")
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	grant := &oauth.EnterpriseGrant{
		Provider: oauth.IdentityProvider{TokenEndpoint: "https://idp.corp/token", Client: oauth.Client{ID: "at-idp", Key: &oauth.Key{Signer: key}}},
		Subject:  func(context.Context) (oauth.SubjectToken, error) { return oauth.SubjectToken{Token: "id-token"}, nil },
		Client:   oauth.Client{Issuer: loginURL, ID: "at-as"},
	}
	w.mustPost(w.transport(&oauth.Options{Grant: grant}), "", served)
	if _, claims := verified(t, (*asked)[0].Get("client_assertion"), key.Public()); claims["aud"] != "https://idp.corp/token" {
		t.Errorf("the audience is %q", claims["aud"])
	}
}

// A grant that lacks its function is rejected before anything is sent.
func TestGrantWithoutFunction(t *testing.T) {
	for name, grant := range map[string]oauth.Grant{
		"Subject":   &oauth.EnterpriseGrant{Client: oauth.Client{Issuer: loginURL, ID: "id"}},
		"Assertion": &oauth.WorkloadIdentity{Issuer: loginURL},
	} {
		w := newWorld(t)
		rt := w.transport(&oauth.Options{Grant: grant})
		if err := rt.Authorize(t.Context()); !errors.Is(err, mcp.ErrUnauthorized) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if w.mustFail(rt, mcp.ErrUnauthorized); w.asked("") != 0 {
			t.Errorf("%s: something was sent", name)
		}
	}
}

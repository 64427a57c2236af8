// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authtest_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
)

const resource = "https://notes.example.com/mcp"

// algorithms are all algorithms that an Issuer supports.
var algorithms = []string{"ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA"}

func verify(t *testing.T, v auth.TokenVerifier, token string) (*mcp.Principal, error) {
	t.Helper()
	return v.VerifyToken(t.Context(), token)
}

// Tokens with any algorithm are verified with the keys that the issuer publishes.
func TestTokens(t *testing.T) {
	issuer := authtest.NewIssuer(t, resource, algorithms...)
	tokens := must(auth.NewJWT(issuer.URL, resource, nil))
	for _, algorithm := range append(algorithms, "") {
		p, err := verify(t, tokens, issuer.TokenWith(algorithm, authtest.Claims{"sub": "ada", "scope": "a b", "team": "x"}))
		if err != nil {
			t.Errorf("%s: %v", algorithm, err)
			continue
		}
		if p.Subject != "ada" || p.Issuer != issuer.URL || !slices.Equal(p.Scopes, []string{"a", "b"}) || p.Claims["team"] != "x" {
			t.Errorf("%s: got %+v", algorithm, p)
		}
	}
}

// Invalid tokens are rejected, by signature and by introspection, and valid ones are
// accepted.
func TestInvalidTokens(t *testing.T) {
	issuer := authtest.NewIssuer(t, resource)
	ada := authtest.Claims{"sub": "ada"}
	before := maps.Clone(ada)
	for name, v := range map[string]auth.TokenVerifier{
		"JWT":           must(auth.NewJWT(issuer.URL, resource, nil)),
		"introspection": must(auth.NewIntrospection(issuer.IntrospectionURL(), resource, nil)),
	} {
		if p, err := verify(t, v, issuer.Token(ada)); err != nil || p.Subject != "ada" {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
		if p, err := verify(t, v, issuer.Token(nil)); err != nil || p.Subject != "user" {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
		invalid := issuer.InvalidTokens(ada)
		if len(invalid) < 9 {
			t.Errorf("%d tokens are invalid", len(invalid))
		}
		for problem, token := range invalid {
			if p, err := verify(t, v, token); err == nil {
				t.Errorf("%s: a token that is %s is accepted: %+v", name, problem, p)
			}
		}
	}
	if !maps.Equal(ada, before) {
		t.Errorf("the claims were changed to %v", ada)
	}
}

// Opaque tokens are active for introspection until they are revoked.
func TestOpaqueTokens(t *testing.T) {
	issuer := authtest.NewIssuer(t, resource)
	tokens := must(auth.NewIntrospection(issuer.IntrospectionURL(), resource, &auth.IntrospectionOptions{CacheAge: -1}))
	token := issuer.OpaqueToken(authtest.Claims{"sub": "ada"})
	if p, err := verify(t, tokens, token); err != nil || p.Subject != "ada" {
		t.Errorf("got %+v, %v", p, err)
	}
	issuer.Revoke(token)
	if p, err := verify(t, tokens, token); err == nil {
		t.Errorf("a revoked token is accepted: %+v", p)
	}
}

// Without a network, the server is given the keys. Time is that of the synctest bubble.
func TestWithoutNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := &authtest.Issuer{URL: "https://login.example.com", Audience: resource}
		tokens := must(auth.NewJWT(issuer.URL, resource, &auth.JWTOptions{Keys: issuer.JWKS()}))
		token := issuer.Token(authtest.Claims{"exp": time.Now().Add(time.Hour)})
		if _, err := verify(t, tokens, token); err != nil {
			t.Error(err)
		}
		<-time.After(2 * time.Hour)
		if _, err := verify(t, tokens, token); err == nil {
			t.Error("an expired token is accepted")
		}
	})
}

// whoami returns a protected server with a tool that returns its caller.
func whoami(v auth.Verifier) http.Handler {
	mux := mcp.NewMux("whoami", "v1.0.0", nil)
	mux.Tool("whoami", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return mcp.PrincipalFromContext(ctx).Subject, nil
	}, nil))
	return auth.Require(v, &auth.Options{Metadata: &auth.Metadata{Resource: resource}})(mcphttp.NewRouter(mux, nil))
}

// A bound token requires proofs made with its key, which a client with the key sends.
func TestProofs(t *testing.T) {
	issuer, key, other := authtest.NewIssuer(t, resource), authtest.NewProofKey(), authtest.NewProofKey()
	dpop := must(auth.NewDPoP(must(auth.NewJWT(issuer.URL, resource, nil)), resource, nil))
	url := mcptest.Serve(t, whoami(dpop)) + "/mcp"
	token := issuer.Token(authtest.Claims{"sub": "ada", "cnf": key.Confirmation()})
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		c := mcptest.Dial(t, mcphttp.NewTransport(url, &mcphttp.TransportOptions{Client: key.Client(resource, token)}), &mcp.ClientOptions{Version: version})
		if got, err := mcp.Call[string](t.Context(), c, "whoami", nil); err != nil || got != "ada" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	for name, proof := range map[string]string{
		"another key":     other.Proof(http.MethodPost, resource, token, nil),
		"another method":  key.Proof(http.MethodGet, resource, token, nil),
		"another URL":     key.Proof(http.MethodPost, resource+"/x", token, nil),
		"another token":   key.Proof(http.MethodPost, resource, "x", nil),
		"changed claims":  key.Proof(http.MethodPost, resource, token, authtest.Claims{"iat": 1}),
		"without a claim": key.Proof(http.MethodPost, resource, token, authtest.Claims{"jti": nil}),
	} {
		r := httptest.NewRequest(http.MethodPost, resource, http.NoBody)
		r.Header.Set("Authorization", "DPoP "+token)
		r.Header.Set("DPoP", proof)
		if p, err := dpop.Verify(r); err == nil {
			t.Errorf("%s: accepted: %+v", name, p)
		}
	}
}

func TestPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"unknown algorithm": func() { (&authtest.Issuer{Algorithms: []string{"HS256"}}).Token(nil) },
		"no such key":       func() { new(authtest.Issuer).TokenWith("RS256", nil) },
		"claim":             func() { new(authtest.Issuer).Token(authtest.Claims{"x": func() {}}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// must returns v. It panics if there is an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

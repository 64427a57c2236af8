// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/mcphttp/auth"
)

const tokenURL = "https://mcp.example.com/token"

// tokenRequest is a request of the token endpoint with proofs.
func tokenRequest(proofs ...string) *http.Request {
	r := request()
	r.URL.Path, r.RequestURI = "/token", "/token"
	for _, p := range proofs {
		r.Header.Add("DPoP", p)
	}
	return r
}

// A proof of a token request names the key to which the token will be bound.
func TestVerifyProof(t *testing.T) {
	d := newDPoP(auth.DPoPOptions{})
	if jkt, err := d.VerifyProof(tokenRequest()); jkt != "" || err != nil {
		t.Errorf("no proof: %q, %v", jkt, err)
	}
	good := func() string { return prove(otherKey(), "", nil, claims{"htu": tokenURL, "ath": nil}) }
	if jkt, err := d.VerifyProof(tokenRequest(good())); jkt != thumbprint(otherKey()) || err != nil {
		t.Errorf("%q, %v", jkt, err)
	}
	used := good()
	if _, err := d.VerifyProof(tokenRequest(used)); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	jwk := jose.JSONWebKey{Key: otherKey().Public()}
	weak := must(rsa.GenerateKey(rand.Reader, 1024))
	p := func(header, changes claims) []string {
		c := claims{"htu": tokenURL, "ath": nil}
		maps.Copy(c, changes)
		return []string{prove(otherKey(), "", header, c)}
	}
	for name, proofs := range map[string][]string{
		"used before": {used}, "two": {good(), good()}, "empty": {""}, "no JWT": {"proof"}, "too long": {strings.Repeat("a", 9<<10)},
		"thief with another's jwk": {prove(newECKey(), "", claims{"jwk": jwk}, claims{"htu": tokenURL})},
		"of the resource":          p(nil, claims{"htu": resource}), "another server": p(nil, claims{"htu": "https://evil.example.com/token"}), "no URL": p(nil, claims{"htu": nil}), "another method": p(nil, claims{"htm": "GET"}),
		"too old": p(nil, claims{"iat": now - 310}), "in the future": p(nil, claims{"iat": now + 70}), "no time": p(nil, claims{"iat": nil}), "no id": p(nil, claims{"jti": nil}),
		"another type": p(claims{"typ": "JWT"}, nil), "private key": p(claims{"jwk": jose.JSONWebKey{Key: otherKey()}}, nil), "no key": p(claims{"jwk": nil}, nil), "an access token": {boundToken(otherKey())},
		"alg none": {forge(claims{"typ": "dpop+jwt", "alg": "none", "jwk": jwk}, nil, func([]byte) []byte { return nil })},
		"weak key": {sign(jose.RS256, "", weak, claims{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: weak.Public()}}, claims{"jti": "x", "htm": "POST", "htu": tokenURL, "iat": now})},
	} {
		jkt, err := d.VerifyProof(tokenRequest(proofs...))
		if e, ok := errors.AsType[*auth.Error](err); jkt != "" || !ok || e.Code != "invalid_dpop_proof" {
			t.Errorf("%s: %q, %v", name, jkt, err)
		}
	}
}

// With nonces, the first request of a client gets one.
func TestVerifyProofNonce(t *testing.T) {
	d := newDPoP(auth.DPoPOptions{RequireNonce: true})
	_, err := d.VerifyProof(tokenRequest(prove(otherKey(), "", nil, claims{"htu": tokenURL, "ath": nil})))
	e, ok := errors.AsType[*auth.Error](err)
	if !ok || e.Code != "use_dpop_nonce" || e.Header.Get("DPoP-Nonce") == "" {
		t.Fatalf("%v", err)
	}
	if jkt, err := d.VerifyProof(tokenRequest(prove(otherKey(), "", nil, claims{"htu": tokenURL, "ath": nil, "nonce": e.Header.Get("DPoP-Nonce")}))); jkt == "" || err != nil {
		t.Errorf("%q, %v", jkt, err)
	}
}

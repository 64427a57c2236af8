// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// issuer is an authorization server that signs whatever the test wants.
type issuer struct {
	url    string
	signer jose.Signer
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signing := jose.JSONWebKey{Key: key, KeyID: "1", Algorithm: string(jose.ES256)}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: signing}, nil)
	if err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	answer := func(v any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) }
	}
	routes.HandleFunc("/.well-known/oauth-authorization-server", answer(map[string]string{"issuer": server.URL, "jwks_uri": server.URL + "/jwks"}))
	routes.HandleFunc("/jwks", answer(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{signing.Public()}}))
	return &issuer{server.URL, signer}
}

// token returns a token for a server, with scopes.
func (i *issuer) token(t *testing.T, audience, scope string) string {
	t.Helper()
	token, err := jwt.Signed(i.signer).Claims(map[string]any{
		"iss": i.url, "aud": audience, "sub": "ada", "scope": scope, "exp": time.Now().Add(time.Hour).Unix(),
	}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

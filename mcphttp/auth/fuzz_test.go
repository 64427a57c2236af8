// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp/auth"
)

// No headers cause a panic, and only the valid token is accepted.
func FuzzCredentials(f *testing.F) {
	tok := boundToken(otherKey())
	parts := strings.Split(tok, ".")
	f.Add("Bearer "+tok, "")
	f.Add("DPoP "+tok, prove(newECKey(), tok, nil, nil))
	f.Add("bearer "+parts[0]+"."+parts[1]+".", "a.b.c")
	f.Add("DPoP", "..")
	f.Add(`Basic realm="x", Bearer x`, "\x00")
	tokens := newJWT(auth.JWTOptions{})
	v := auth.FirstOf(tokens, must(auth.NewDPoP(tokens, resource, nil)), auth.MutualTLS(nil))
	f.Fuzz(func(t *testing.T, authorization, proof string) {
		r := request()
		r.Header = http.Header{"Authorization": {authorization}, "Dpop": {proof}}
		p, err := v.Verify(r)
		if _, refused := errors.AsType[*auth.Error](err); p != nil || !refused && !errors.Is(err, auth.ErrNoCredentials) {
			t.Errorf("got %v, %v", p, err)
		}
	})
}

// No published keys cause a panic, and no other key is accepted.
func FuzzKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":""}]}`))
	f.Add(keySet(nil))
	tok := token(nil)
	f.Fuzz(func(t *testing.T, text []byte) {
		n := newNetwork()
		n.put(keysURL, string(text))
		if p, err := remote(n, auth.JWTOptions{}).VerifyToken(t.Context(), tok); err == nil {
			t.Errorf("got %v", p)
		}
	})
}

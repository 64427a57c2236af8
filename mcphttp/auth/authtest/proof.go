// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authtest

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/internal/made"
)

// A ProofKey is the key to which a client's tokens are bound (DPoP, RFC 9449). It must be
// created by [NewProofKey].
type ProofKey struct{ key jose.JSONWebKey }

// NewProofKey returns a new key.
func NewProofKey() *ProofKey {
	k := newKey(string(jose.ES256))
	k.KeyID = "" // the header of a proof contains the key itself
	return &ProofKey{k}
}

// mustBeMade panics unless the key was created by NewProofKey.
func (k *ProofKey) mustBeMade() {
	made.Check(k != nil && k.key.Key != nil, "authtest: a ProofKey", "NewProofKey")
}

// Confirmation returns the claim cnf of a token that is bound to the key:
//
//	token := issuer.Token(authtest.Claims{"cnf": key.Confirmation()})
func (k *ProofKey) Confirmation() Claims {
	k.mustBeMade()
	return Claims{"jkt": encode(must(k.key.Thumbprint(crypto.SHA256)))}
}

// Proof returns the value of the header DPoP for a request with a token, with changes
// applied to the claims jti, htm, htu, iat and ath.
func (k *ProofKey) Proof(method, url, token string, changes Claims) string {
	k.mustBeMade()
	sum := sha256.Sum256([]byte(token))
	c := Claims{"jti": rand.Text(), "htm": method, "htu": url, "iat": time.Now().Unix(), "ath": encode(sum[:])}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return sign(k.key, "dpop+jwt", map[jose.HeaderKey]any{"jwk": k.key.Public()}, c)
}

// Client returns an HTTP client that sends every request with the token and a new proof for
// resource, the URL of the server under test as in its options.
func (k *ProofKey) Client(resource, token string) *http.Client {
	k.mustBeMade()
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "DPoP "+token)
		r.Header.Set("DPoP", k.Proof(r.Method, resource, token, nil))
		return http.DefaultTransport.RoundTrip(r)
	})}
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// bound is a world that uses DPoP. It checks every proof, and requires nonces if nonces is
// set.
type bound struct {
	*world
	nonces bool
	seen   map[string]bool // by jti
	thumbs map[string]bool
}

func newBound(t *testing.T) *bound {
	b := &bound{world: newWorld(t), seen: map[string]bool{}, thumbs: map[string]bool{}}
	b.login.metadata["dpop_signing_alg_values_supported"] = []string{"ES256"}
	b.login.answers = func(_ url.Values, answer map[string]any) { answer["token_type"] = "DPoP" }
	b.login.token = func(rw http.ResponseWriter, r *http.Request) bool {
		if b.proof(r, "", "login-nonce") {
			return false
		}
		rw.Header().Set("DPoP-Nonce", "login-nonce")
		writeJSON(rw, 400, map[string]any{"error": "use_dpop_nonce"})
		return true
	}
	b.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "DPoP "); ok {
			if !b.proof(r, token, "server-nonce") {
				rw.Header().Set("DPoP-Nonce", "server-nonce")
				rw.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
				rw.WriteHeader(http.StatusUnauthorized)
				return
			}
			r.Header.Set("Authorization", "Bearer "+token)
		} else if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
			t.Error("a bound token was sent as a Bearer token")
		}
		b.server.ServeHTTP(rw, r)
	})
	b.server.challenge = `DPoP algs="ES256"`
	return b
}

// proof checks the proof of a request, and reports whether it has the required nonce.
func (b *bound) proof(r *http.Request, access, nonce string) bool {
	b.t.Helper()
	proofs := r.Header.Values("DPoP")
	if len(proofs) != 1 {
		b.t.Errorf("%d proofs", len(proofs))
		return false
	}
	header, claims := verified(b.t, proofs[0], nil)
	if !header.JSONWebKey.IsPublic() || header.ExtraHeaders["typ"] != "dpop+jwt" || header.KeyID != "" {
		b.t.Errorf("header of the proof: %v", header)
	}
	thumb, _ := header.JSONWebKey.Thumbprint(crypto.SHA256)
	b.thumbs[string(thumb)] = true
	jti := fmt.Sprint(claims["jti"])
	if b.seen[jti] {
		b.t.Errorf("jti %q again", jti)
	}
	b.seen[jti] = true
	want := map[string]any{"htm": r.Method, "htu": r.URL.Scheme + "://" + r.URL.Host + r.URL.Path}
	if access != "" {
		sum := sha256.Sum256([]byte(access))
		want["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	for name, value := range want {
		if claims[name] != value {
			b.t.Errorf("%s of the proof is %v, want %v", name, claims[name], value)
		}
	}
	return !b.nonces || claims["nonce"] == nonce
}

func TestDPoP(t *testing.T) {
	for name, test := range map[string]struct {
		challenge string
		opts      oauth.Options
		nonces    bool
		requests  int
	}{
		"asked for":      {`DPoP algs="ES256"`, oauth.Options{}, false, 3},
		"wanted":         {`Bearer, DPoP algs="ES256"`, oauth.Options{DPoP: new(oauth.Key)}, false, 3},
		"with nonces":    {`DPoP algs="ES256"`, oauth.Options{}, true, 4},
		"in the request": {`DPoP`, oauth.Options{DPoP: new(oauth.Key)}, true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBound(t)
			b.nonces, b.server.challenge = test.nonces, test.challenge
			rt := b.transport(&test.opts)
			b.mustPost(rt, "", served)
			b.mustPost(rt, "", served)
			if n := b.asked("POST " + serverURL); n != test.requests {
				t.Errorf("%d requests to the server, want %d", n, test.requests)
			}
			if len(b.login.authorizations()) != 1 || b.login.authorizations()[0].Get("dpop_jkt") == "" {
				t.Errorf("authorizations: %v", b.login.authorizations())
			}
			if len(b.thumbs) != 1 {
				t.Errorf("%d keys, want 1", len(b.thumbs))
			}
		})
	}
}

// The key is stored with the token, for refreshing and for the next process.
func TestDPoPKeyStays(t *testing.T) {
	own, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	other, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	for name, test := range map[string]struct {
		first, second  *oauth.Key
		authorizations int
	}{
		"made":    {nil, nil, 1},
		"own":     {&oauth.Key{Signer: own}, &oauth.Key{Signer: own}, 1},
		"another": {&oauth.Key{Signer: own}, &oauth.Key{Signer: other}, 2},
		"lost":    {&oauth.Key{Signer: own}, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBound(t)
			b.login.refresh = "r"
			b.mustPost(b.transport(&oauth.Options{DPoP: test.first}), "", served)
			b.login.revoke()
			b.mustPost(b.transport(&oauth.Options{DPoP: test.second}), "", served)
			if n := len(b.login.authorizations()); n != test.authorizations {
				t.Errorf("%d authorizations, want %d", n, test.authorizations)
			}
			if n := len(b.thumbs); n != test.authorizations {
				t.Errorf("%d keys, want %d", n, test.authorizations)
			}
		})
	}
}

// A stored token that is not bound is not used if DPoP is required.
func TestDPoPInsteadOfStored(t *testing.T) {
	w := newWorld(t)
	w.mustPost(w.transport(nil), "", served)
	b := newBound(t)
	b.login.valid = w.login.valid
	b.store = w.store
	b.mustPost(b.transport(&oauth.Options{DPoP: new(oauth.Key)}), "", served)
	if n := len(b.login.authorizations()); n != 1 {
		t.Errorf("%d authorizations, want 1", n)
	}
}

// A token that is not bound is rejected if DPoP is required. A server that always requires
// another nonce gets only a few requests.
func TestDPoPRefused(t *testing.T) {
	b := newBound(t)
	b.login.answers = nil
	if got, err := post(t.Context(), b.transport(nil), "", "hello"); err == nil {
		t.Errorf("with a Bearer token: %q", got)
	}
	b = newBound(t)
	b.login.metadata["dpop_signing_alg_values_supported"] = []string{"EdDSA"}
	if got, err := post(t.Context(), b.transport(nil), "", "hello"); err == nil {
		t.Errorf("without a common algorithm: %q", got)
	}
	b = newBound(t)
	inner, n := b.hosts[origin(serverURL)], 0
	b.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("DPoP") == "" {
			inner.ServeHTTP(rw, r)
			return
		}
		n++
		rw.Header().Set("DPoP-Nonce", fmt.Sprint("nonce-", n))
		rw.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
		rw.WriteHeader(http.StatusUnauthorized)
	})
	b.mustPost(b.transport(nil), "", "401")
	if n > 10 {
		t.Errorf("%d requests for nonces", n)
	}
	b = newBound(t)
	n = 0
	b.login.token = func(rw http.ResponseWriter, _ *http.Request) bool {
		n++
		rw.Header().Set("DPoP-Nonce", fmt.Sprint("nonce-", n))
		writeJSON(rw, 400, map[string]any{"error": "use_dpop_nonce"})
		return true
	}
	if got, err := post(t.Context(), b.transport(nil), "", "hello"); err == nil || n > 10 {
		t.Errorf("%q after %d token requests", got, n)
	}
}

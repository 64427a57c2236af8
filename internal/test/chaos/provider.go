// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"

	"golang.org/x/oauth2"

	"github.com/go-psi/psi/mcphttp/auth/authtest"
)

// An idp is the identity provider of the guests. It is not killed, and believes whoever comes.
type idp struct {
	issuer   *authtest.Issuer
	lifetime int // of access tokens, in seconds

	mu    sync.Mutex
	codes map[string]url.Values
}

// newProvider returns a provider at a URL. With a lifetime of five seconds, its token is
// refreshed at each refresh of a guest.
func newProvider(base string, lifetime int) http.Handler {
	p := &idp{issuer: &authtest.Issuer{URL: base, Audience: "psi"}, lifetime: lifetime, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"issuer": base, "authorization_endpoint": base + "/auth", "token_endpoint": base + "/token", "jwks_uri": base + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(p.issuer.JWKS()) })
	mux.HandleFunc("/auth", p.authorize)
	mux.HandleFunc("/token", p.token)
	return mux
}

func (p *idp) authorize(w http.ResponseWriter, r *http.Request) {
	q, code := r.URL.Query(), rand.Text()
	q.Set("user", r.Header.Get(userHeader))
	p.mu.Lock()
	p.codes[code] = q
	p.mu.Unlock()
	w.Header().Set("Location", q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode())
	w.WriteHeader(http.StatusFound)
}

func (p *idp) token(w http.ResponseWriter, r *http.Request) {
	answer := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "refresh_token": "refresh", "expires_in": p.lifetime}
	if r.FormValue("grant_type") == "authorization_code" {
		p.mu.Lock()
		q := p.codes[r.FormValue("code")]
		delete(p.codes, r.FormValue("code"))
		p.mu.Unlock()
		if q == nil || q.Get("code_challenge") != oauth2.S256ChallengeFromVerifier(r.FormValue("code_verifier")) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answer["id_token"] = p.issuer.Token(authtest.Claims{"sub": q.Get("user"), "nonce": q.Get("nonce")})
	}
	writeJSON(w, answer)
}

func writeJSON(w http.ResponseWriter, v map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // the replica may be gone
}

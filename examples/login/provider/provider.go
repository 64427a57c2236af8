// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package provider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
)

// The one client of the provider.
const (
	ClientID     = "mcp-server"
	ClientSecret = "not a secret"
)

const page = `<!DOCTYPE html><html lang="en"><title>Log in</title><h1>Log in</h1>
<form method="post"><label>Name <input name="user" value="ada"></label> <button>Log in</button></form></html>`

type provider struct {
	issuer string
	key    jose.JSONWebKey
	signer jose.Signer

	mu    sync.Mutex
	codes map[string]login // by code or refresh token; each is used once
}

// A login is an authorization request and the user who has logged in.
type login struct {
	request   url.Values
	user      string
	isRefresh bool
}

// New returns the provider at a URL.
func New(issuer string) http.Handler {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // cannot happen
	}
	p := &provider{issuer: issuer, codes: map[string]login{}}
	p.key = jose.JSONWebKey{Key: private, KeyID: "1", Algorithm: string(jose.ES256), Use: "sig"}
	if p.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.key}, nil); err != nil {
		panic(err) // cannot happen
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		send(w, map[string]any{"issuer": issuer, "authorization_endpoint": issuer + "/login", "token_endpoint": issuer + "/token", "jwks_uri": issuer + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		send(w, &jose.JSONWebKeySet{Keys: []jose.JSONWebKey{p.key.Public()}})
	})
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page)) })
	mux.HandleFunc("POST /login", p.login)
	mux.HandleFunc("POST /token", p.token)
	return mux
}

// login sends the user back with a code.
func (p *provider) login(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID {
		http.Error(w, "unknown client", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = login{request: q, user: r.PostFormValue("user")}
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.issuer}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther) //nolint:gosec // no real provider does this
}

// token exchanges a code or a refresh token for an ID token and the next refresh token.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	isRefresh := r.PostFormValue("grant_type") == "refresh_token"
	code, next := r.PostFormValue("code"), rand.Text()
	if isRefresh {
		code = r.PostFormValue("refresh_token")
	}
	p.mu.Lock()
	l, ok := p.codes[code]
	delete(p.codes, code)
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	isProved := isRefresh || l.request.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:])
	id, secret, _ := r.BasicAuth()
	if !ok || l.isRefresh != isRefresh || !isProved || id != ClientID || secret != url.QueryEscape(ClientSecret) {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": p.issuer, "aud": ClientID, "sub": "user of " + l.user, "email": l.user + "@example.com", "email_verified": true,
		"nonce": l.request.Get("nonce"), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	})
	if err != nil {
		panic(err) // cannot happen
	}
	signed, err := p.signer.Sign(claims)
	if err != nil {
		panic(err) // cannot happen
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err) // cannot happen
	}
	p.mu.Lock()
	p.codes[next] = login{l.request, l.user, true}
	p.mu.Unlock()
	send(w, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 3600, "refresh_token": next, "id_token": token})
}

func send(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.MarshalWrite(w, v) // the client may be gone
}

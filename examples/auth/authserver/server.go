// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/go-chi/chi/v5"
	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/mcphttp"
)

// What is kept, and read, at most. When there is no more room, any other goes.
const (
	maxClients = 1000
	maxGrants  = 10_000
	maxBody    = 64 << 10
)

type server struct {
	issuer string
	scopes []string // that there are
	key    jose.JSONWebKey

	mu      sync.Mutex
	clients map[string]*client // by client_id
	grants  map[string]*grant
}

// New is an authorization server for the URL at which it will be served, the issuer,
// which has no path. The scopes are those that there are to be asked for.
func New(issuer string, scopes ...string) http.Handler {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // there is no randomness
	}
	s := &server{
		issuer: issuer, scopes: scopes,
		key:     jose.JSONWebKey{Key: key, KeyID: rand.Text(), Algorithm: string(jose.ES256), Use: "sig"},
		clients: map[string]*client{}, grants: map[string]*grant{},
	}
	r := chi.NewRouter()
	r.Use(careful)
	r.Get("/authorize", s.authorize)
	r.Post("/authorize", s.authorize)
	r.Group(func(r chi.Router) {
		r.Use(mcphttp.CORS("*")) // there are no cookies that a page could misuse
		r.HandleFunc("/.well-known/oauth-authorization-server", s.metadata)
		r.HandleFunc("/jwks", s.jwks)
		r.HandleFunc("/register", s.register)
		r.HandleFunc("/token", s.token)
	})
	return r
}

// careful is for all pages: nobody keeps them, frames them, or learns their address
// from the next one. The policy has no form-action, which in some browsers would
// forbid the way back to the client.
func careful(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

func (s *server) metadata(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer":                                         s.issuer,
		"authorization_endpoint":                         s.issuer + "/authorize",
		"token_endpoint":                                 s.issuer + "/token",
		"registration_endpoint":                          s.issuer + "/register",
		"jwks_uri":                                       s.issuer + "/jwks",
		"scopes_supported":                               s.scopes,
		"response_types_supported":                       []string{"code"},
		"grant_types_supported":                          []string{byCode, byRefresh},
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"authorization_response_iss_parameter_supported": true,
	})
}

func (s *server) jwks(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{s.key.Public()}})
}

// makeRoom makes room for one more.
func makeRoom[V any](m map[string]V, most int) {
	for key := range m {
		if len(m) < most {
			return
		}
		delete(m, key)
	}
}

func writeError(w http.ResponseWriter, status int, code, description string) {
	writeJSON(w, status, map[string]string{"error": code, "error_description": description})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

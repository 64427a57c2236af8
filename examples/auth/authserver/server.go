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

// Limits on what is stored and read. Beyond a limit, arbitrary entries are removed.
const (
	maxClients = 1000
	maxGrants  = 10_000
	maxBody    = 64 << 10
)

type server struct {
	issuer string
	scopes []string // that clients can request
	key    jose.JSONWebKey

	mu      sync.Mutex
	clients map[string]*client // by client_id
	grants  map[string]*grant
}

// New returns an authorization server for issuer, the URL at which it will be served, which
// has no path. Clients can request the given scopes.
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

// careful ensures that pages are not cached or framed, and that they do not leak their
// address as a referrer. It also limits request bodies. The policy has no form-action,
// because in some browsers that would block the redirect to the client.
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

// makeRoom removes arbitrary entries until there is room for another one.
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
	_, _ = w.Write(body) // the client may be gone
}

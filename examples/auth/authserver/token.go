// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"
)

// The supported grant types.
const (
	byCode    = "authorization_code"
	byRefresh = "refresh_token"
)

// Lifetimes of keys and tokens.
const (
	codeAge    = time.Minute
	tokenAge   = 5 * time.Minute
	refreshAge = 24 * time.Hour
)

// A grant is what a user has allowed. It has one valid key at a time: first the code, then
// one refresh token after another. If an old key is used, it may have been stolen, so the
// grant is revoked.
type grant struct {
	*request
	user    string
	kind    string // of the key: byCode or byRefresh
	secret  string // second half of the key; the first half is the grant's id
	expires time.Time
}

// grant creates a grant and returns its code.
func (s *server) grant(a *request, user string) (code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	makeRoom(s.grants, maxGrants)
	id := rand.Text()
	s.grants[id] = &grant{request: a, user: user}
	return s.grants[id].rotate(id, byCode, codeAge)
}

// rotate replaces the key and returns the new one.
func (g *grant) rotate(id, kind string, age time.Duration) (key string) {
	g.kind, g.secret, g.expires = kind, rand.Text(), time.Now().Add(age)
	return id + "." + g.secret
}

// redeem exchanges a key for the next one. If the key is not valid, it returns a nil grant.
func (s *server) redeem(kind, key string, fits func(*grant) bool) (g *grant, next string) {
	id, secret, _ := strings.Cut(key, ".")
	s.mu.Lock()
	defer s.mu.Unlock()
	g = s.grants[id]
	switch {
	case g == nil:
		return nil, ""
	case g.kind != kind, !isSame(g.secret, secret), time.Now().After(g.expires), !fits(g):
		delete(s.grants, id)
		return nil, ""
	}
	return g, g.rotate(id, byRefresh, refreshAge)
}

func (s *server) token(w http.ResponseWriter, r *http.Request) {
	form := r.PostFormValue
	kind, key := form("grant_type"), form("code")
	if kind == byRefresh {
		key = form("refresh_token")
	}
	switch {
	case r.Method != http.MethodPost:
		writeError(w, http.StatusMethodNotAllowed, "invalid_request", "expected a POST")
		return
	case kind != byCode && kind != byRefresh:
		writeError(w, http.StatusBadRequest, "unsupported_grant_type", "expected "+byCode+" or "+byRefresh)
		return
	case s.client(form("client_id")) == nil:
		writeError(w, http.StatusUnauthorized, "invalid_client", "this client is not known here")
		return
	}
	g, next := s.redeem(kind, key, func(g *grant) bool {
		if g.client.ID != form("client_id") || form("resource") != g.resource {
			return false
		}
		return kind == byRefresh || form("redirect_uri") == g.redirectURI &&
			isSame(g.challenge, oauth2.S256ChallengeFromVerifier(form("code_verifier")))
	})
	if g == nil {
		writeError(w, http.StatusBadRequest, "invalid_grant", "this is not, or no longer, good")
		return
	}
	access, err := s.sign(g)
	if err != nil {
		writeError(w, http.StatusInternalServerError, "server_error", "the token could not be signed")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": access, "token_type": "Bearer", "expires_in": int(tokenAge.Seconds()),
		"refresh_token": next, "scope": strings.Join(g.scopes, " "),
	})
}

// sign returns an access token (RFC 9068).
func (s *server) sign(g *grant) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: s.key}, new(jose.SignerOptions).WithType("at+jwt"))
	if err != nil {
		return "", err
	}
	now := time.Now()
	return jwt.Signed(signer).Claims(map[string]any{
		"iss": s.issuer, "aud": g.resource, "sub": g.user, "client_id": g.client.ID, "scope": strings.Join(g.scopes, " "),
		"iat": now.Unix(), "exp": now.Add(tokenAge).Unix(), "jti": rand.Text(),
	}).Serialize()
}

func isSame(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// maxToken is the maximum length of a token in bytes. Tokens with many claims take several
// thousand.
const maxToken = 16 << 10

type bearer struct{ tokens TokenVerifier }

// Bearer returns a [Verifier] of access tokens in the header "Authorization: Bearer …" (RFC
// 6750, section 2.1). A token bound to a client certificate is valid only on a connection
// with that certificate (RFC 8705). A token bound to anything else is rejected.
func Bearer(tokens TokenVerifier) Verifier {
	if tokens == nil {
		panic("auth: Bearer wants a verifier of tokens")
	}
	return bearer{tokens}
}

func (b bearer) Verify(r *http.Request) (*mcp.Principal, error) {
	token, err := credentialsOf(r, schemeBearer)
	if err != nil {
		return nil, err
	}
	p, err := verifyToken(b.tokens, r, token)
	if err != nil || p == nil {
		return nil, err
	}
	if p.Claims["cnf"] == nil {
		return p, nil
	}
	bound, err := checkCertificateBinding(r, p)
	if err != nil {
		return nil, err
	}
	if len(bound) > 0 {
		return nil, NewInvalidTokenError("the token is bound to a key, and cannot be used as a bearer token")
	}
	return p, nil
}

func (bearer) Challenges() []string { return []string{schemeBearer} }

// checkCertificateBinding checks that a token bound to a client certificate was sent on a
// connection with that certificate. It returns the other members of the claim cnf.
func checkCertificateBinding(r *http.Request, p *mcp.Principal) (map[string]any, error) {
	claim := p.Claims["cnf"]
	if claim == nil {
		return nil, nil
	}
	cnf, ok := claim.(map[string]any)
	if !ok {
		return nil, NewInvalidTokenError("the claim cnf is not an object")
	}
	rest := make(map[string]any, len(cnf))
	for name, value := range cnf {
		if name != "x5t#S256" {
			rest[name] = value
			continue
		}
		if want, ok := value.(string); !ok || !sameCertificate(r, want) {
			return nil, NewInvalidTokenError("the token is bound to another client certificate than the one of the connection")
		}
	}
	return rest, nil
}

func sameCertificate(r *http.Request, thumbprint string) bool {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	sum := sha256.Sum256(r.TLS.PeerCertificates[0].Raw)
	return sameText(thumbprint, base64.RawURLEncoding.EncodeToString(sum[:]))
}

func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// schemeOf returns the scheme of the Authorization header, or "".
func schemeOf(r *http.Request) string {
	values := r.Header["Authorization"]
	if len(values) == 0 {
		return ""
	}
	return nameOf(values[0])
}

// credentialsOf returns the credentials in the Authorization header for a scheme.
func credentialsOf(r *http.Request, scheme string) (string, error) {
	values := r.Header["Authorization"]
	if len(values) == 0 {
		return "", ErrNoCredentials
	}
	if len(values) > 1 {
		return "", malformed("the header Authorization appears more than once")
	}
	name, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(name, scheme) {
		return "", ErrNoCredentials
	}
	token = strings.Trim(token, " ")
	if !isToken(token) {
		e := malformed("the header Authorization must be the word %s and a token of at most %d bytes", scheme, maxToken)
		e.Scheme = scheme
		return "", e
	}
	return token, nil
}

// isToken reports whether s can be a token: visible ASCII, not empty and not too long.
func isToken(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

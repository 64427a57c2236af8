// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-psi/psi/mcp"
)

// A Verifier tells who makes a request. It is called for many requests at once.
type Verifier interface {
	// Verify returns the caller, who is not nil if the error is, and has a Subject:
	// callers with the same Issuer and Subject are one. It must not read the body. Of
	// the errors, [ErrNoCredentials] means that there is nothing to verify, and an
	// [*Error], such as one of [Invalid], that the credentials are refused. Any other
	// means that it could not be found out: the caller gets a 503, does not throw its
	// credentials away, and is told nothing of the error.
	//
	// The same principal may be returned for many requests: nobody may change it.
	Verify(r *http.Request) (*mcp.Principal, error)
}

// A VerifierFunc is a function that is a [Verifier].
type VerifierFunc func(r *http.Request) (*mcp.Principal, error)

// Verify calls f.
func (f VerifierFunc) Verify(r *http.Request) (*mcp.Principal, error) { return f(r) }

// A TokenVerifier tells who an access token was issued to, whichever way it came. The
// errors are as those of a [Verifier]. It checks that the token was issued for this
// server; whether the caller may use it is for the Verifier around it: see [Bearer]
// and [NewDPoP]. Confirmation claims (cnf) have to be in [mcp.Principal.Claims].
type TokenVerifier interface {
	VerifyToken(ctx context.Context, token string) (*mcp.Principal, error)
}

// requestVerifier is a TokenVerifier to which it matters where a token comes from.
type requestVerifier interface {
	verifyTokenOf(r *http.Request, token string) (*mcp.Principal, error)
}

func verifyToken(tokens TokenVerifier, r *http.Request, token string) (*mcp.Principal, error) {
	if v, ok := tokens.(requestVerifier); ok {
		return v.verifyTokenOf(r, token)
	}
	return tokens.VerifyToken(r.Context(), token)
}

// A Challenger is a [Verifier] that knows how to ask for its credentials. One that is
// none asks with "Bearer".
type Challenger interface {
	// Challenges are schemes of HTTP authentication, each with parameters of its
	// own if it has any: `DPoP algs="ES256"`. [Require] adds the others. None means
	// that the credentials are not of HTTP.
	Challenges() []string
}

func challengesOf(v Verifier) []string {
	if c, ok := v.(Challenger); ok {
		return c.Challenges()
	}
	return []string{schemeBearer}
}

// stamper has something to add to the answers to its own requests.
type stamper interface {
	stamp(h http.Header, r *http.Request)
}

type firstOf []Verifier

// FirstOf is a [Verifier] of several kinds of credentials: the first verifier that knows
// the caller decides. If none does, an error that leaves open who it is goes before
// one that refuses; of several, the first one counts.
func FirstOf(verifiers ...Verifier) Verifier {
	if len(verifiers) == 0 || slices.Contains(verifiers, nil) {
		panic("auth: FirstOf wants at least one verifier, and none that is nil")
	}
	return firstOf(slices.Clone(verifiers))
}

func (all firstOf) Verify(r *http.Request) (*mcp.Principal, error) {
	var open, refused error
	for _, v := range all {
		p, err := v.Verify(r)
		switch _, isRefusal := errors.AsType[*Error](err); {
		case err == nil:
			return p, nil
		case errors.Is(err, ErrNoCredentials):
		case isRefusal && refused == nil:
			refused = err
		case !isRefusal && open == nil:
			open = err
		}
	}
	switch {
	case open != nil:
		return nil, open
	case refused != nil:
		return nil, refused
	}
	return nil, ErrNoCredentials
}

func (all firstOf) Challenges() []string {
	var list []string
	for _, v := range all {
		for _, c := range challengesOf(v) {
			if !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list
}

func (all firstOf) stamp(h http.Header, r *http.Request) {
	for _, v := range all {
		if s, ok := v.(stamper); ok {
			s.stamp(h, r)
		}
	}
}

// ErrNoCredentials is what a [Verifier] returns for a request that has none of the
// credentials it looks for.
var ErrNoCredentials = errors.New("auth: no credentials")

// The codes of an [Error] (RFC 6750, section 3.1; RFC 9449, sections 7.1 and 9).
const (
	CodeInvalidRequest    = "invalid_request"    // 400: the credentials are malformed
	CodeInvalidToken      = "invalid_token"      // 401: they are not, or no longer, good here
	CodeInsufficientScope = "insufficient_scope" // 403: they are good, but not for this
	CodeInvalidProof      = "invalid_dpop_proof" // 401
	CodeUseNonce          = "use_dpop_nonce"     // 401: the proof needs the nonce of the header DPoP-Nonce
)

// An Error says why credentials were refused.
type Error struct {
	Code        string      // one of the Code constants; empty means CodeInvalidToken
	Description string      // what the caller is told: no secrets, nothing of the credentials
	Scheme      string      // whose challenge says it, such as "DPoP"; empty means the first
	Header      http.Header // further headers of the answer; may be nil
	Cause       error       // for logs; never sent
}

func (e *Error) Error() string {
	text := "auth: " + e.code()
	if e.Description != "" {
		text += ": " + e.Description
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func (e *Error) code() string {
	if e.Code == "" {
		return CodeInvalidToken
	}
	return e.Code
}

func (e *Error) status() int {
	switch e.Code {
	case CodeInvalidRequest:
		return http.StatusBadRequest
	case CodeInsufficientScope:
		return http.StatusForbidden
	default:
		return http.StatusUnauthorized
	}
}

// Invalid is the error for credentials that are not, or no longer, good here. The
// caller is told the text.
func Invalid(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidToken, Description: fmt.Sprintf(format, args...)}
}

// because sets the cause of e.
func (e *Error) because(err error) *Error {
	e.Cause = err
	return e
}

func malformed(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidRequest, Description: fmt.Sprintf(format, args...)}
}

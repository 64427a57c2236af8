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

// A Verifier authenticates requests. It must be safe for concurrent use.
type Verifier interface {
	// Verify returns the authenticated caller. If the error is nil, the principal must not
	// be nil and must have a Subject. Principals with the same Issuer and Subject are the
	// same caller. Verify must not read the request body.
	//
	// If there is nothing to verify, Verify returns [ErrNoCredentials]. If the credentials
	// are rejected, it returns an [*Error], for example from [NewInvalidTokenError]. Any other error
	// means that the credentials could not be verified: the client gets a 503 without
	// details, and need not discard its credentials.
	//
	// Verify may return the same principal for many requests; it must not be modified.
	Verify(r *http.Request) (*mcp.Principal, error)
}

// A VerifierFunc is a function that implements [Verifier].
type VerifierFunc func(r *http.Request) (*mcp.Principal, error)

// Verify calls f.
func (f VerifierFunc) Verify(r *http.Request) (*mcp.Principal, error) {
	if f == nil {
		panic("auth: the VerifierFunc is nil")
	}
	return f(r)
}

// A TokenVerifier verifies access tokens independently of how they were sent, and checks
// that they were issued for this server. Its errors have the same meaning as the errors of
// a [Verifier]. The Verifier that wraps it checks whether the caller may use the token: see
// [Bearer] and [NewDPoP]. Confirmation claims (cnf) must be in [mcp.Principal.Claims].
type TokenVerifier interface {
	VerifyToken(ctx context.Context, token string) (*mcp.Principal, error)
}

// A requestVerifier is a TokenVerifier that depends on the request.
type requestVerifier interface {
	verifyTokenOf(r *http.Request, token string) (*mcp.Principal, error)
}

func verifyToken(tokens TokenVerifier, r *http.Request, token string) (*mcp.Principal, error) {
	if v, ok := tokens.(requestVerifier); ok {
		return v.verifyTokenOf(r, token)
	}
	return tokens.VerifyToken(r.Context(), token)
}

// A Challenger is a [Verifier] that provides its own challenges. For any other Verifier,
// the challenge is "Bearer".
type Challenger interface {
	// Challenges returns HTTP authentication schemes with scheme-specific parameters, such
	// as `DPoP algs="ES256"`. [Require] adds the common parameters. An empty list means
	// that the credentials are not sent by HTTP authentication.
	Challenges() []string
}

func challengesOf(v Verifier) []string {
	if c, ok := v.(Challenger); ok {
		return c.Challenges()
	}
	return []string{schemeBearer}
}

// A stamper adds headers to the responses to requests that use its scheme.
type stamper interface {
	stamp(h http.Header, r *http.Request)
}

type firstOf []Verifier

// FirstOf returns a [Verifier] that tries verifiers in order and returns the first
// principal. If all fail, an error that is not a rejection takes precedence over a
// rejection, and a rejection over ErrNoCredentials; among equals, the first is returned.
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

// ErrNoCredentials is returned by a [Verifier] for a request without credentials of its
// kind.
var ErrNoCredentials = errors.New("auth: no credentials")

// The codes of an [Error] (RFC 6750, section 3.1; RFC 9449, sections 7.1 and 9).
const (
	CodeInvalidRequest    = "invalid_request"    // 400: the credentials are malformed
	CodeInvalidToken      = "invalid_token"      // 401: they are invalid, or no longer valid
	CodeInsufficientScope = "insufficient_scope" // 403: they are valid, but lack a scope
	CodeInvalidProof      = "invalid_dpop_proof" // 401: the DPoP proof is invalid
	CodeUseNonce          = "use_dpop_nonce"     // 401: the proof needs the nonce in DPoP-Nonce
)

// An Error describes why credentials were rejected.
type Error struct {
	Code        string      // one of the Code constants; empty means CodeInvalidToken
	Description string      // sent to the client; must not contain secrets or credentials
	Scheme      string      // selects the challenge, such as "DPoP"; empty means the first
	Header      http.Header // additional response headers; may be nil
	Cause       error       // for logs; not sent
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

// NewInvalidTokenError returns an error with [CodeInvalidToken], for credentials that are invalid or no
// longer valid. The text is sent to the client.
func NewInvalidTokenError(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidToken, Description: fmt.Sprintf(format, args...)}
}

// because sets the cause of e and returns e.
func (e *Error) because(err error) *Error {
	e.Cause = err
	return e
}

func malformed(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidRequest, Description: fmt.Sprintf(format, args...)}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"errors"
	"fmt"
	"net/http"
)

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

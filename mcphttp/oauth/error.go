// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"errors"
	"fmt"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
)

// Errors that report the kind of a failure, for use with errors.Is. An error of a
// [Transport] that wraps one of them also wraps [mcp.ErrUnauthorized].
var (
	// ErrUnsafeURL means that a URL from a server must not be used.
	ErrUnsafeURL = errors.New("oauth: unsafe URL")
	// ErrResource means that metadata describes a resource other than the server.
	ErrResource = errors.New("oauth: metadata of another resource")
	// ErrIssuer means that an authorization server is not the expected one: its metadata or
	// response names another issuer, or the credentials are for another issuer or do not
	// name one.
	ErrIssuer = errors.New("oauth: another authorization server")
	// ErrState means that a redirect does not belong to an authorization request of this
	// client.
	ErrState = errors.New("oauth: redirect of another authorization")
	// ErrMetadata means that there is no usable metadata.
	ErrMetadata = errors.New("oauth: no usable metadata")
	// ErrNoClient means that the client is not registered with the authorization server and
	// cannot register.
	ErrNoClient = errors.New("oauth: the client is not registered")
)

// An Error is an error response from an authorization server (RFC 6749, section 5.2). Its
// texts are written by the server: present them as such.
type Error struct {
	Issuer      string // "" if unknown
	Status      int    // HTTP status; 0 for an error in a redirect
	Code        string // such as invalid_grant or access_denied; "" if there was none
	Description string
}

func (e *Error) Error() string {
	text := "oauth: the authorization server"
	if e.Issuer != "" {
		text += fmt.Sprintf(" %q", redact.URL(e.Issuer))
	}
	if e.Code == "" {
		return fmt.Sprintf("%s answered with status %d", text, e.Status)
	}
	text += fmt.Sprintf(" refused: %.100q", e.Code)
	if e.Description != "" {
		text += fmt.Sprintf(" (%.300q)", e.Description)
	}
	return text
}

// errorCode returns the code of the *Error in err, or "".
func errorCode(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// unauthorized wraps an error in [mcp.ErrUnauthorized].
func unauthorized(err error) error { return fmt.Errorf("%w: %w", mcp.ErrUnauthorized, err) }

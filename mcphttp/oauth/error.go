// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"errors"
	"fmt"

	"github.com/go-psi/psi/mcp"
)

// Kinds of failures, found with errors.Is in what a [Transport] returns. There they
// stand beside [mcp.ErrUnauthorized], whatever the reason is for which the client
// could not be authorized.
var (
	// ErrUnsafeURL means that a URL that came from a server must not be used.
	ErrUnsafeURL = errors.New("oauth: unsafe URL")
	// ErrResource means that metadata is about another resource than the server.
	ErrResource = errors.New("oauth: metadata of another resource")
	// ErrIssuer means that an authorization server is not the one it should be: its
	// metadata or its response names another, or the credentials belong to another or
	// do not say to which.
	ErrIssuer = errors.New("oauth: another authorization server")
	// ErrState means that a redirect belongs to no authorization of this client.
	ErrState = errors.New("oauth: redirect of another authorization")
	// ErrMetadata means that there is no metadata, or none that can be used.
	ErrMetadata = errors.New("oauth: no usable metadata")
	// ErrNoClient means that there is no way for the client to be known to the
	// authorization server.
	ErrNoClient = errors.New("oauth: the client is not registered")
)

// An Error is a refusal of an authorization server (RFC 6749, section 5.2). Its
// texts are the server's: show them as such.
type Error struct {
	Issuer      string // "" if there is none
	Status      int    // of HTTP; 0 if it came by redirect
	Code        string // such as invalid_grant or access_denied; "" if it was none
	Description string
}

func (e *Error) Error() string {
	text := "oauth: the authorization server"
	if e.Issuer != "" {
		text += fmt.Sprintf(" %q", e.Issuer)
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

// code is that of the *Error in err, "" if there is none.
func errorCode(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// unauthorized makes an error one of [mcp.ErrUnauthorized].
func unauthorized(err error) error { return fmt.Errorf("%w: %w", mcp.ErrUnauthorized, err) }

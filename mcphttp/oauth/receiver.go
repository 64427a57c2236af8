// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"net/url"
)

// A Receiver takes users to authorization servers and back. It is used by several
// transports at once if they share it.
type Receiver interface {
	// Open prepares for one authorization. Before is the redirect URI with which the
	// program is registered already, "" if there is none; another one means that it
	// has to register anew.
	Open(ctx context.Context, before string) (Reception, error)
}

// A Reception is the way of one user to an authorization server and back.
type Reception interface {
	// RedirectURI is where the authorization server sends the user to.
	RedirectURI() string
	// Authorize takes the user to a URL, which is https, or http on this machine, and
	// returns the parameters with which the user comes back to the redirect URI. They
	// are checked by the caller. It returns when ctx ends.
	Authorize(ctx context.Context, authorizationURL string) (url.Values, error)
	// Close ends the reception. It is called once.
	Close() error
}

// NewReceiver makes a Receiver of a function that is a Reception's Authorize, and a
// redirect URI that is always the same: for programs that have a page for it.
func NewReceiver(redirectURI string, authorize func(ctx context.Context, authorizationURL string) (url.Values, error)) Receiver {
	return &fixed{redirectURI, authorize}
}

type fixed struct {
	uri       string
	authorize func(ctx context.Context, authorizationURL string) (url.Values, error)
}

func (f *fixed) Open(context.Context, string) (Reception, error) { return f, nil }

func (f *fixed) RedirectURI() string { return f.uri }

func (f *fixed) Authorize(ctx context.Context, authorizationURL string) (url.Values, error) {
	return f.authorize(ctx, authorizationURL)
}

func (f *fixed) Close() error { return nil }

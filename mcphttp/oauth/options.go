// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"
)

// Options configure a [Transport]. Nil means the zero Options: a user authorizes
// the program in a browser on this machine, and nothing is remembered.
type Options struct {
	// Base sends the requests to the MCP server, and asks it for its metadata. Nil
	// means http.DefaultTransport.
	Base http.RoundTripper
	// Egress sends the requests to where the server's metadata says, such as those
	// to authorization servers. Nil means a transport that uses the proxies of the
	// environment, as http.DefaultTransport does, and dials no address that the
	// server has no business to send anyone to: see PrivateNetworks. One that is
	// given has to see to that itself, and so has a proxy: only what can be seen from
	// the URL is checked before they are asked.
	Egress http.RoundTripper
	// PrivateNetworks allows a server with a public address to send the client to
	// private ones. A server that itself has a private address may do so anyway, and
	// one on this machine may name other ports of it, in plain HTTP as well.
	PrivateNetworks bool
	// ExactResource accepts no token for a resource above the server's URL, such as
	// its origin. By default such a token is accepted if the resource above publishes
	// metadata of its own: many servers have only that. Set it where the paths of a
	// host belong to parties that do not trust each other, because each of them is
	// sent a token that is good for all.
	ExactResource bool

	// Grant is how tokens are got. Nil means &AuthorizationCode{}.
	Grant Grant
	// Scopes are what to ask for in the first place, besides what the server's
	// challenge asks for. Nil means what the challenge says, or else what the
	// server's metadata lists.
	Scopes []string
	// Store remembers tokens and registrations. Nil means a new [MemoryStore].
	Store Store

	// DPoP binds every token to a key (RFC 9449), and refuses any that is not. It is
	// done without asking if the server takes nothing else.
	DPoP bool
	// DPoPKey is the key to bind to. Nil means one that is made for the purpose and
	// kept with the token.
	DPoPKey *Key

	// MaxStepUps is how often one request may have the client authorized anew for
	// want of scopes. 0 means 2, negative never.
	MaxStepUps int
	// MaxReplay is how long the body of a request may be, in bytes, to be kept for
	// sending it again, if it has no GetBody. A request with a longer one is sent
	// once, and a refusal of it is the caller's. 0 means 1 MiB, negative none.
	MaxReplay int64
	// Timeout bounds each request for metadata, registration or a token. 0 means 30
	// seconds.
	Timeout time.Duration
	// LoginTimeout bounds getting a token, the time that a user takes included. It
	// goes on when the request that began it has ended. 0 means 5 minutes.
	LoginTimeout time.Duration
	// Logger gets what there is to say to the operator; no secrets. Nil means
	// slog.Default.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Base == nil {
		opts.Base = http.DefaultTransport
	}
	if opts.Grant == nil {
		opts.Grant = &AuthorizationCode{}
	}
	if opts.Store == nil {
		opts.Store = NewMemoryStore()
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	opts.MaxStepUps = cmp.Or(opts.MaxStepUps, 2)
	opts.MaxReplay = cmp.Or(opts.MaxReplay, 1<<20)
	opts.Timeout = cmp.Or(opts.Timeout, 30*time.Second)
	opts.LoginTimeout = cmp.Or(opts.LoginTimeout, 5*time.Minute)
	opts.Scopes = scopeSet(opts.Scopes)
	return opts
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/flight"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/network"
)

// A Transport authorizes the requests to one MCP server. It is an http.RoundTripper, safe
// for concurrent use. It must be made by [NewTransport].
//
// Requests to the server's origin get its token. All others are passed on unchanged, and
// so are requests that already have an Authorization header, and requests that a redirect
// has led away from the server's path. A DELETE never asks a user. If a server is neither
// https nor on this machine, no token is sent to it; if it requires one, requests fail.
//
// When the server responds with 401, or with 403 and insufficient_scope, one request
// renews or gets a token while the others wait, and then all are sent again. If their
// contexts end first, getting the token continues for later requests. If the server still
// rejects a request, its response is returned. If no token could be obtained, the request
// fails with an error that wraps [mcp.ErrUnauthorized] and the reason.
type Transport struct {
	opts     Options
	server   *url.URL
	home     string // the server's origin
	static   reach  // reach of the server by its URL alone
	invalid  error  // why no request can be sent: an invalid server URL or grant
	egress   *egress
	life     context.Context
	end      context.CancelCauseFunc
	nonces   nonces
	renewals flight.Group[*credential, outcome] // by the token that was used

	mu      sync.Mutex
	cred    *credential
	near    reach                // of the last response that required authorization
	refused time.Time            // when a new token did not help
	futile  map[string]time.Time // scopes that did not help, and when
	bound   string               // issuer of the clients without an issuer
	old     string               // protocol version of the last request
}

// A credential is a token in use.
type credential struct {
	*token
	proof *prover // nil unless the token is bound to a key
	site  *site   // that issued it
}

var errClosed = errors.New("oauth: the transport is closed")

// NewTransport returns a transport for the MCP server at a URL, the same that is passed to
// mcphttp.NewTransport. opts may be nil. It sends nothing before the first request. If the
// URL is invalid, or if the grant lacks an issuer for its credentials or a required
// function, every request fails.
func NewTransport(server string, opts *Options) *Transport {
	t := &Transport{opts: opts.withDefaults(), futile: map[string]time.Time{}, nonces: newNonces(), renewals: flight.Group[*credential, outcome]{Detached: true}}
	t.life, t.end = context.WithCancelCause(context.Background())
	u, err := url.Parse(server)
	badGrant := t.opts.Grant.check()
	switch {
	case err != nil:
		t.invalid = fmt.Errorf("oauth: the server's URL: %w", err)
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil:
		t.invalid = fmt.Errorf("oauth: %q is not the URL of an HTTP server", server)
	case badGrant != nil:
		t.invalid = unauthorized(badGrant)
	default:
		u.Fragment = ""
		t.server = u
		t.home, t.static = origin(u), t.staticReach()
		t.near = t.static
		t.egress = &egress{base: t.opts.Base, far: t.opts.Egress, home: t.home}
		if t.egress.far == nil {
			t.egress.far = newEgressTransport()
		}
	}
	return t
}

// mustBeMade panics if NewTransport did not make the transport.
func (t *Transport) mustBeMade() {
	made.Check(t != nil && t.end != nil, "oauth: a Transport", "NewTransport")
}

// Close ends background work, such as a user's authorization. A token that is being refreshed
// is still saved, within a minute. After Close, requests that need a new token fail. Close does
// not close Options.Base.
func (t *Transport) Close() error {
	t.mustBeMade()
	t.end(errClosed)
	return nil
}

// Authorize gets a token if there is none, without waiting for the server to require it:
// use it to have the user log in before connecting. It returns when there is a token, or
// when ctx is done; the user may then still continue.
func (t *Transport) Authorize(ctx context.Context) error {
	t.mustBeMade()
	if t.invalid != nil {
		return t.invalid
	}
	if !isSecure(t.server) {
		return unauthorized(t.errInsecure())
	}
	for range maxRenewals {
		cred := t.current()
		if cred != nil && !cred.expired(time.Now()) {
			return nil
		}
		if how, err := t.renew(ctx, cred, &need{}); err != nil || how == authorized {
			return err
		}
	}
	return unauthorized(errors.New("oauth: every token ends as soon as it is there"))
}

func (t *Transport) errInsecure() error {
	return fmt.Errorf("%w: %q is not https, so no token may be sent there", ErrUnsafeURL, t.server)
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.mustBeMade()
	if t.invalid != nil {
		closeRequest(req)
		return nil, t.invalid
	}
	switch {
	case origin(req.URL) != t.home, req.Header.Get("Authorization") != "", req.Response != nil && !isBelow(req.URL, t.server):
		return t.opts.Base.RoundTrip(req)
	case !isSecure(req.URL):
		res, err := t.opts.Base.RoundTrip(req)
		if err == nil && res.StatusCode == http.StatusUnauthorized {
			discard(res)
			return nil, unauthorized(t.errInsecure())
		}
		return res, err
	}
	body, err := newBody(req)
	if err != nil {
		closeRequest(req)
		return nil, err
	}
	defer body.close()
	a := &attempt{t: t, req: req, body: body}
	return a.run()
}

func (t *Transport) current() *credential {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cred
}

// version returns the protocol version header for metadata requests: servers of revision
// 2025-03-26 may depend on it.
func (t *Transport) version() http.Header {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.old == "" {
		return nil
	}
	return http.Header{headerVersion: {t.old}}
}

const headerVersion = "Mcp-Protocol-Version"

// staticReach returns the reach of the server by its URL alone.
func (t *Transport) staticReach() reach {
	var r reach
	host := t.server.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		r = reachFrom(ip)
	} else if network.IsLoopback(host) {
		r = reachFrom(netip.IPv6Loopback())
	}
	r.private = r.private || t.opts.PrivateNetworks
	return r
}

// Options configure a [Transport]. Nil means the zero Options: a user authorizes the
// program in a browser on this machine, and tokens are kept in memory.
type Options struct {
	// Base sends the requests to the MCP server, including those for its metadata. Nil
	// means http.DefaultTransport.
	Base http.RoundTripper
	// Egress sends the requests to all other servers, such as authorization servers. Nil
	// means a transport that uses the proxies of the environment, as
	// http.DefaultTransport does, and refuses to dial addresses that the MCP server must
	// not send clients to: see PrivateNetworks. A custom Egress must check addresses
	// itself, and so must a proxy: the Transport then checks URLs only.
	Egress http.RoundTripper
	// PrivateNetworks allows a server with a public address to send the client to private
	// addresses. A server with a private address may do so anyway, and one on this
	// machine may name other ports of it, including plain HTTP.
	PrivateNetworks bool
	// ExactResource rejects metadata for a resource above the server's URL, such as its
	// origin. By default it is accepted if that resource publishes it itself: many
	// servers have only that. Set ExactResource if the paths of a host belong to parties
	// that do not trust each other, because a token for the whole host is valid for all
	// of them.
	ExactResource bool

	// Grant obtains tokens. Nil means &AuthorizationCode{}.
	Grant Grant
	// Scopes are requested in addition to those of the server's challenge. Nil means the
	// scopes of the challenge or, without any, those that the server's metadata lists.
	Scopes []string
	// Store keeps tokens and registrations. Nil means a new [MemoryStore].
	Store Store

	// DPoP binds every token to a key (RFC 9449), and rejects other tokens. If the server
	// accepts nothing else, tokens are bound anyway.
	DPoP bool
	// DPoPKey is the key to bind to. Nil means a new key, which is stored with the token.
	DPoPKey *Key

	// MaxStepUps is how often one request may ask for more scopes. 0 means 2, negative
	// never.
	MaxStepUps int
	// LoginTimeout bounds getting a token, including the time that a user takes. It is
	// independent of the request that needs the token. 0 means 5 minutes.
	LoginTimeout time.Duration
	// Logger receives diagnostic messages, without secrets. Nil means slog.Default.
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
	opts.LoginTimeout = cmp.Or(opts.LoginTimeout, 5*time.Minute)
	opts.Scopes = scopeSet(opts.Scopes)
	return opts
}

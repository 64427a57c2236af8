// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/redact"
)

// A Transport is an http.RoundTripper that authorizes requests to one MCP server. It is
// safe for concurrent use. It must be created by [NewTransport].
//
// Requests to the server's origin are sent with its token. Requests to other origins,
// requests that already have an Authorization header, and requests redirected away from the
// server's path are passed on unchanged. A DELETE never prompts the user. If the server is
// neither https nor on this machine, no token is sent to it; if it requires one, requests
// fail.
//
// When the server responds with 401, or with 403 and insufficient_scope, one request
// obtains or renews a token while the others wait, and then all are sent again. If their
// contexts end first, this continues in the background for later requests. If the server
// still rejects a request, its response is returned. If no token could be obtained, the
// request fails with an error that wraps [mcp.ErrUnauthorized] and the reason.
type Transport struct {
	opts     Options
	server   *url.URL
	home     string // the server's origin
	static   reach  // reach of the server according to its URL alone
	invalid  error  // why no request can be sent: an invalid server URL or grant
	egress   *egress
	life     context.Context
	end      context.CancelCauseFunc
	nonces   nonces
	renewals async.Flight[*credential, outcome] // keyed by the token that was used

	mu      sync.Mutex
	cred    *credential
	near    reach                // of the last response that required authorization
	refused time.Time            // when the server last rejected a new token
	futile  map[string]time.Time // scopes that could not be obtained or did not help, and when
	bound   string               // issuer for clients configured without one
	old     string               // protocol version of the last request
}

// A credential is a token in use.
type credential struct {
	*token
	proof *prover // nil unless the token is bound to a key
	site  *site   // where it was issued
}

var errClosed = errors.New("oauth: the transport is closed")

// NewTransport returns a transport for the MCP server at a URL, the same URL as passed to
// mcphttp.NewTransport. opts may be nil. Nothing is sent before the first request. If the
// URL or one in the options is invalid, or if the grant lacks an issuer for its credentials
// or a required function, every request fails.
func NewTransport(server string, opts *Options) *Transport {
	// A token belongs to one server, so two servers on one host never share one.
	t := &Transport{opts: opts.withDefaults(), futile: map[string]time.Time{}, nonces: newNonces(), renewals: async.Flight[*credential, outcome]{Detached: true}}
	t.life, t.end = context.WithCancelCause(context.Background())
	u, err := url.Parse(server)
	badOptions := t.opts.check()
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "", u.User != nil:
		t.invalid = fmt.Errorf("oauth: %q is not the URL of an HTTP server, without user information", redact.URL(server))
	case badOptions != nil:
		t.invalid = unauthorized(badOptions)
	default:
		u.Fragment = ""
		t.server = u
		t.home, t.static = origin(u), t.staticReach()
		t.near = t.static
		t.egress = &egress{base: t.opts.Base, far: t.opts.Egress, home: t.home, logger: t.opts.Logger}
		if t.egress.far == nil {
			t.egress.far = newEgressTransport()
		}
	}
	return t
}

// mustBeMade panics unless the transport was created by NewTransport.
func (t *Transport) mustBeMade() {
	made.Check(t != nil && t.end != nil, "oauth: a Transport", "NewTransport")
}

// Close cancels background work, such as a pending user authorization. A token that is
// being refreshed is still saved, within a minute. After Close, requests that need a new
// token fail. Close does not close Options.Base.
func (t *Transport) Close() error {
	t.mustBeMade()
	t.end(errClosed)
	return nil
}

// Authorize obtains a token if there is none, without waiting for the server to require it.
// Use it to have the user log in before connecting. It returns when there is a token or ctx
// is done. In the latter case, the user may still complete the login.
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
		if how, err := t.renew(ctx, cred, &renewalReason{}); err != nil || how == authorized {
			return err
		}
	}
	return unauthorized(errors.New("oauth: every token has expired when it arrives"))
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

// version returns the protocol version header for metadata requests, on which servers of
// revision 2025-03-26 may depend.
func (t *Transport) version() http.Header {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.old == "" {
		return nil
	}
	return http.Header{headerVersion: {t.old}}
}

const headerVersion = "Mcp-Protocol-Version"

// staticReach returns the reach of the server according to its URL alone.
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
	// addresses. A server with a private address may always do so, and a server on this
	// machine may also name other ports of this machine, including for plain HTTP.
	PrivateNetworks bool
	// ExactResource rejects metadata for a parent of the server's URL, such as its origin.
	// By default, such metadata is accepted at the parent's own well-known URL, because
	// many servers publish nothing else. Set ExactResource if the paths of a host belong to
	// parties that do not trust each other, because a token for the whole host is valid for
	// all of them.
	ExactResource bool
	// AuthorizationServerMetadata is the URL of the metadata of the authorization server (RFC
	// 8414 or OpenID Connect Discovery): https, or http on this machine. It replaces the
	// authorization servers that the MCP server names, for servers whose own metadata is
	// missing or wrong. "" means none.
	//
	// The document is trusted. Its issuer may be any: responses and credentials are compared
	// with that one. Its endpoints may be in a private network. If it lists no
	// code_challenge_methods_supported, although the authorization server supports PKCE with
	// S256, as all should, the login continues.
	AuthorizationServerMetadata string
	// InsecureNoResource omits the parameter resource (RFC 8707) from authorization and token
	// requests, for authorization servers that reject it. The specification requires it: it
	// restricts the token to this server. Without it, the token is valid wherever the
	// authorization server decides, usually by the scopes, and every server that gets it can
	// use it at the others. Set it only if the tokens are valid for this server alone, or for
	// servers that trust each other.
	InsecureNoResource bool

	// Grant obtains tokens. Nil means &AuthorizationCode{}.
	Grant Grant
	// Scopes are requested in addition to the scopes in the server's challenge. Nil means
	// the scopes in the challenge or, if there are none, the scopes in the server's
	// metadata.
	Scopes []string
	// Store keeps tokens and registrations. Nil means a new [MemoryStore].
	Store Store

	// DPoP binds every token to this key (RFC 9449), and rejects other tokens. The zero Key
	// means a new key, which is stored with the token. Nil means that tokens are bound, to a
	// new key, only if the server requires it.
	DPoP *Key

	// Logger receives diagnostic messages, without secrets. Nil means slog.Default.
	Logger *slog.Logger
}

// check returns an error if the options are invalid.
func (o *Options) check() error {
	if o.AuthorizationServerMetadata != "" {
		if _, err := parseURL(o.AuthorizationServerMetadata); err != nil {
			return fmt.Errorf("oauth: Options.AuthorizationServerMetadata: %w", err)
		}
	}
	return o.Grant.check()
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
	opts.Scopes = scopeSet(opts.Scopes)
	return opts
}

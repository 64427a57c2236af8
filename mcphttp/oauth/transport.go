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
	"github.com/go-psi/psi/internal/network"
)

// A Transport authorizes the requests to one MCP server. It is an http.RoundTripper,
// safe for concurrent use.
//
// Requests to the server's origin get its token. Others are passed on as they are,
// and so are those that have an Authorization header already, and those that a
// redirect has led away from the server's path. No user is asked for a DELETE.
// Towards a server that is neither https nor on this machine nothing can be
// authorized: when it asks for it, the request fails.
//
// When the server answers 401 or, with insufficient_scope, 403, a token is renewed
// or got, by one of all requests that need it while the others wait, and the
// requests are sent again. If their contexts end before that is done, it goes on
// for those that come later. A response that is still a refusal is returned as it
// is. A request that is refused because there was no token to be got fails with an
// error that wraps [mcp.ErrUnauthorized] and the reason.
type Transport struct {
	opts     Options
	server   *url.URL
	home     string // the server's origin
	static   reach  // what the server's URL says of where it is
	invalid  error  // why nothing can be sent: server is not one, or the grant is not safe
	egress   *egress
	life     context.Context
	end      context.CancelCauseFunc
	nonces   nonces
	renewals flight.Group[*credential, outcome] // by the token that was used

	mu      sync.Mutex
	cred    *credential
	near    reach                // of the last response that asked for authorization
	refused time.Time            // when a new token was of no use
	futile  map[string]time.Time // scopes that were of no use, and when
	bound   string               // the issuer to which clients without an issuer belong
	old     string               // the protocol version of the last request
}

// A credential is a token in use.
type credential struct {
	*token
	proof *prover // nil unless the token is bound to a key
	site  *site   // where it is from
}

var errClosed = errors.New("oauth: the transport is closed")

// NewTransport makes a transport for the MCP server at a URL, which is the one that
// mcphttp.NewTransport gets. opts may be nil. It does nothing before the first
// request; a URL that is none makes every request fail, and so does a grant with
// credentials that name no issuer, or without its function.
func NewTransport(server string, opts *Options) *Transport {
	t := &Transport{opts: opts.withDefaults(), futile: map[string]time.Time{}, renewals: flight.Group[*credential, outcome]{Detached: true}}
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

// Close ends what is going on in the background, such as a user's authorization.
// Requests that need a token that is not there fail from now on. The base is not
// closed.
func (t *Transport) Close() error {
	t.end(errClosed)
	return nil
}

// Authorize gets a token if there is none, without waiting for the server to refuse
// a request: for programs that have the user log in before they connect. It returns
// when there is one, or when ctx ends; the user may go on then.
func (t *Transport) Authorize(ctx context.Context) error {
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

// version is the header of requests for metadata: servers of 2025-03-26 may answer
// by it.
func (t *Transport) version() http.Header {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.old == "" {
		return nil
	}
	return http.Header{headerVersion: {t.old}}
}

const headerVersion = "Mcp-Protocol-Version"

// staticReach is what the server's URL says of where it is.
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
	opts.LoginTimeout = cmp.Or(opts.LoginTimeout, 5*time.Minute)
	opts.Scopes = scopeSet(opts.Scopes)
	return opts
}

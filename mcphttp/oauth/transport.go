// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"
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
	opts    Options
	server  *url.URL
	home    string // the server's origin
	static  reach  // what the server's URL says of where it is
	invalid error  // why nothing can be sent: server is not one, or the grant is not safe
	egress  *egress
	life    context.Context
	end     context.CancelCauseFunc
	nonces  nonces

	mu      sync.Mutex
	cred    *credential
	flight  *flight
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
	t := &Transport{opts: opts.withDefaults(), futile: map[string]time.Time{}}
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
		t.egress = &egress{base: t.opts.Base, far: t.opts.Egress, home: t.home, timeout: t.opts.Timeout}
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
	body, err := keep(req, t.opts.MaxReplay)
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
	} else if isLoopback(host) {
		r = reachFrom(netip.IPv6Loopback())
	}
	r.private = r.private || t.opts.PrivateNetworks
	return r
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp/mcptrace"
)

const (
	// maxRenewals is the maximum number of times that one request waits for a token, for
	// any reason.
	maxRenewals = 6
	// maxNonces is the maximum number of times that one request is sent again with another
	// nonce.
	maxNonces = 3
	// pause is how long renewals are paused after the server rejected a new token.
	pause = time.Minute
)

// An attempt sends a request until it is accepted, or until nothing more can be done.
type attempt struct {
	t    *Transport
	req  *http.Request
	body *body
	near atomic.Pointer[reach] // of the server's address

	renewals, nonces, stepUps int
	refreshed, authorized     bool
}

func (a *attempt) run() (*http.Response, error) {
	for {
		cred, err := a.t.freshToken(a.req.Context())
		if err != nil {
			return nil, err
		}
		res, err := a.send(cred)
		if err != nil {
			return nil, err
		}
		again, err := a.handleRefusal(res, cred)
		if err != nil {
			discard(res)
			return nil, err
		}
		if !again {
			return res, nil
		}
		discard(res)
		if t := mcptrace.ClientTraceFromContext(a.req.Context()); t != nil && t.Retry != nil {
			t.Retry(mcptrace.RetryInfo{Err: fmt.Errorf("oauth: the server answered %s", res.Status)})
		}
	}
}

// traceChallenge traces a refusal that the transport handles. Other refusals are traced by
// the client that receives the response.
func (a *attempt) traceChallenge(res *http.Response) {
	if t := mcptrace.ClientTraceFromContext(a.req.Context()); t != nil && t.Challenge != nil {
		t.Challenge(mcptrace.ChallengeInfo{Status: res.StatusCode, Header: res.Header})
	}
}

// send sends the request with a token, or without one if cred is nil.
func (a *attempt) send(cred *credential) (*http.Response, error) {
	ctx := a.req.Context()
	var addressed atomic.Value
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(address string) { addressed.Store(address) },
		GotConn: func(info httptrace.GotConnInfo) { a.near.Store(a.t.reachOf(addressed.Load(), info.Conn)) },
	})
	a.near.Store(&a.t.static)
	req := a.req.Clone(ctx)
	if err := a.body.attach(req); err != nil {
		return nil, err
	}
	if cred != nil {
		if err := a.t.sign(req, cred); err != nil {
			return nil, err
		}
	}
	res, err := a.t.opts.Base.RoundTrip(req)
	if err == nil {
		a.t.nonces.keep(req.URL, res.Header)
	}
	return res, err
}

// reachOf returns the reach of the server, based on the address of the connection. If
// the address is not the one that was requested, it belongs to a proxy.
func (t *Transport) reachOf(addressed any, conn net.Conn) *reach {
	r := t.static
	name, ok := addressed.(string)
	if !ok || t.server.Scheme+"://"+strings.ToLower(name) != t.home {
		return &r
	}
	at, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return &r
	}
	found := reachFrom(at.Addr())
	return &reach{r.loopback || found.loopback, r.private || found.private, r.linkLocal || found.linkLocal}
}

// handleRefusal obtains the token or nonce that the request needs, and reports whether to
// send it again.
func (a *attempt) handleRefusal(res *http.Response, cred *credential) (again bool, err error) {
	switch res.StatusCode {
	case http.StatusUnauthorized:
		if a.body.once {
			return false, nil
		}
		d := readDemand(res.Header)
		if d.foreign {
			return false, nil
		}
		return a.identify(d, res, cred)
	case http.StatusForbidden:
		d := readDemand(res.Header)
		if d.code != "insufficient_scope" || a.body.once || cred == nil || a.isQuiet() {
			return false, nil
		}
		return a.stepUp(&d, res, cred)
	}
	return false, nil
}

// identify obtains a token or nonce for a request that was rejected with 401.
func (a *attempt) identify(d demand, res *http.Response, cred *credential) (again bool, err error) {
	if cred != nil && cred.proof != nil && d.code == codeUseNonce && res.Header.Get(headerNonce) != "" {
		if a.nonces++; a.nonces > maxNonces {
			return false, nil
		}
		a.traceChallenge(res)
		return true, nil
	}
	t := a.t
	if a.renewals++; a.authorized || a.renewals > maxRenewals || t.isPausing(cred) {
		if a.authorized {
			t.noteRefused()
		}
		return false, nil
	}
	quiet := a.isQuiet()
	if quiet && cred == nil {
		return false, nil
	}
	a.traceChallenge(res)
	t.note(*a.near.Load(), a.req.Header.Get(headerVersion))
	how, err := t.renew(a.req.Context(), cred, &renewalReason{demand: d, keepScopes: true, skipRefresh: a.refreshed, refreshOnly: quiet})
	a.refreshed = a.refreshed || how == refreshed
	a.authorized = a.authorized || how == authorized
	if quiet && how == nothing {
		return false, err
	}
	return err == nil, err
}

// isQuiet reports whether the user must not be asked for this request. Ending a session is
// not worth asking a user.
func (a *attempt) isQuiet() bool {
	return a.req.Method == http.MethodDelete && !a.t.opts.Grant.isSilent()
}

// maxStepUps is the maximum number of times that one request may ask for more scopes. An
// operation needs one, and a second if the server names its scopes one after the other.
const maxStepUps = 2

// stepUp obtains a token with more scopes.
func (a *attempt) stepUp(d *demand, res *http.Response, cred *credential) (again bool, err error) {
	t := a.t
	// A step-up is useless if the token has the scopes, or if they have just been
	// requested.
	useless := covers(cred.Scopes, d.scopes) || a.stepUps > 0 && covers(cred.Wanted, d.scopes)
	if a.stepUps >= maxStepUps || len(d.scopes) == 0 || useless || t.isFutile(d.scopes) {
		if a.stepUps > 0 || useless {
			t.noteFutile(d.scopes)
		}
		return false, nil
	}
	if a.renewals++; a.renewals > maxRenewals {
		t.noteFutile(d.scopes)
		return false, nil
	}
	a.stepUps++
	a.traceChallenge(res)
	t.note(*a.near.Load(), a.req.Header.Get(headerVersion))
	how, err := t.renew(a.req.Context(), cred, &renewalReason{demand: *d, stepUp: true})
	if got := t.current(); how != authorized || !covers(got.Wanted, d.scopes) {
		a.stepUps-- // another request got the token, for other scopes
	}
	return err == nil, err
}

// discardSize is the maximum length of a response that is drained so that its connection
// can be reused.
const discardSize = 64 << 10

func discard(res *http.Response) {
	if n := res.ContentLength; n > 0 && n <= discardSize {
		_, _ = io.CopyN(io.Discard, res.Body, n) // only to reuse the connection
	}
	_ = res.Body.Close()
}

// A body is the body of a request that may be sent several times.
type body struct {
	get   func() (io.ReadCloser, error) // nil if there is no body
	once  bool                          // can be sent only once
	sent  bool                          // at least once
	first io.ReadCloser                 // the original body of the request
}

// maxReplay is the maximum length of a body that is buffered to be sent again.
const maxReplay = 1 << 20

// newBody takes ownership of the body of a request. A body without GetBody is buffered, so
// that it can be sent again. If it is too long for that, it can be sent only once.
func newBody(req *http.Request) (*body, error) {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return &body{}, nil
	case req.GetBody != nil:
		return &body{get: req.GetBody, first: req.Body}, nil
	case req.ContentLength > maxReplay:
		return onlyOnce(req.Body), nil
	}
	data, err := io.ReadAll(io.LimitReader(req.Body, maxReplay+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxReplay {
		return onlyOnce(struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(data), req.Body), req.Body}), nil
	}
	get := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return &body{get: get, first: req.Body}, nil
}

func onlyOnce(r io.ReadCloser) *body {
	return &body{get: func() (io.ReadCloser, error) { return r, nil }, once: true, first: r}
}

// attach sets the body of a request, from its start.
func (b *body) attach(req *http.Request) (err error) {
	if b.get != nil {
		req.Body, err = b.get()
		b.sent = true
	}
	return err
}

// close closes the original body of the request, unless it was sent and thereby closed.
func (b *body) close() {
	closed := b.once && b.sent // by the RoundTripper
	if b.first != nil && !closed {
		_ = b.first.Close()
	}
}

func closeRequest(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

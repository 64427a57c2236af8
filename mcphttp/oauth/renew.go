// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/callclock"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptrace"
)

// A renewalReason describes why the current token is not sufficient.
type renewalReason struct {
	demand
	keepScopes  bool // request the same scopes again
	stepUp      bool // request more scopes
	skipRefresh bool // a refreshed token was also rejected
	refreshOnly bool // do not ask for a new authorization
}

// An outcome is the result of a renewal.
type outcome int

const (
	nothing    outcome = iota
	superseded         // another renewal got a token
	adopted            // the store contained a token
	refreshed
	authorized
)

// freshToken returns the token for a request, or nil if there is none yet. It renews an
// expired token if that requires no user. If the renewal fails, it returns the old token
// and lets the server decide.
func (t *Transport) freshToken(ctx context.Context) (*credential, error) {
	cred := t.current()
	if cred == nil || cred.Refresh == "" && !t.opts.Grant.isSilent() || !cred.expired(time.Now()) || t.isPausing(cred) {
		return cred, nil
	}
	n := &renewalReason{keepScopes: true, refreshOnly: !t.opts.Grant.isSilent()}
	if _, err := t.renew(ctx, cred, n); err != nil && ctx.Err() != nil {
		return nil, err
	}
	return t.current(), nil
}

// renew waits until there is a token other than the one that was used, if any. All requests
// that used the same token share one renewal. It continues after their contexts end: if the
// response is not read, the used refresh token is lost.
func (t *Transport) renew(ctx context.Context, used *credential, n *renewalReason) (outcome, error) {
	if t.current() != used {
		return superseded, nil
	}
	defer callclock.Pause(ctx)() // a user may have to log in
	how, err := t.renewals.Do(ctx, used, func(ctx context.Context) (outcome, error) { return t.replace(ctx, used, n) })
	if err != nil && !errors.Is(err, mcp.ErrUnauthorized) { // ctx was done first
		err = unauthorized(fmt.Errorf("oauth: not authorized yet: %w", err))
	}
	return how, err
}

// loginTimeout limits how long obtaining a token may take, including the time that the user
// needs. Requests share a login, so the context of one of them cannot limit it.
const loginTimeout = 5 * time.Minute

// replace replaces the token that was used. It is limited by loginTimeout and canceled by
// Close.
func (t *Transport) replace(ctx context.Context, used *credential, n *renewalReason) (outcome, error) {
	if t.current() != used {
		return superseded, nil // by the previous renewal
	}
	if err := context.Cause(t.life); err != nil {
		return nothing, unauthorized(err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.life, func() { cancel(context.Cause(t.life)) })()
	ctx, stop := context.WithTimeoutCause(ctx, loginTimeout, fmt.Errorf("oauth: authorization took longer than %v", loginTimeout))
	defer stop()
	cred, how, err := t.obtainSafely(ctx, used, n)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if err != nil && n.stepUp {
		t.noteFutile(n.scopes)
	}
	if err != nil {
		t.opts.Logger.WarnContext(ctx, "oauth: not authorized", "server", t.server.Redacted(), "error", err)
		return how, unauthorized(err)
	}
	if cred != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.cred = cred
	}
	return how, nil
}

// obtainSafely calls obtain and recovers panics in grants, which call user code.
func (t *Transport) obtainSafely(ctx context.Context, used *credential, n *renewalReason) (cred *credential, how outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.opts.Logger.ErrorContext(ctx, "oauth: panic while getting a token", "panic", p, "stack", string(debug.Stack()))
			cred, how, err = nil, nothing, errors.New("oauth: panic while getting a token")
		}
	}()
	return t.obtain(ctx, used, n)
}

// obtain gets a token. It tries the store and the refresh token before the grant. If the
// refresh fails with an error that may be temporary, obtain returns the error, unless the
// server has moved to another authorization server.
func (t *Transport) obtain(ctx context.Context, used *credential, n *renewalReason) (*credential, outcome, error) {
	var unrefreshed error
	if used != nil && !n.stepUp && !n.skipRefresh {
		cred, how, err := t.reuseOrRefresh(ctx, used)
		if cred != nil || err != nil && n.refreshOnly {
			return cred, how, err
		}
		unrefreshed = err
	}
	if n.refreshOnly {
		return withoutRefresh(used), nothing, nil
	}
	where, err := t.findSite(ctx, used, n)
	if unrefreshed != nil && (err != nil || where.as.TokenEndpoint == used.site.as.TokenEndpoint) {
		err = unrefreshed
	}
	if err != nil {
		return nil, nothing, err
	}
	if !n.stepUp {
		if cred := t.adopt(ctx, where, used); cred != nil {
			return cred, adopted, nil
		}
	}
	g := &tokenRequest{t: t, site: where, scopes: t.chooseScopes(where, used, n)}
	if err := g.bind(used, n); err != nil {
		return nil, nothing, err
	}
	tok, err := t.opts.Grant.obtain(ctx, g)
	if err != nil {
		return nil, nothing, err
	}
	t.opts.Logger.InfoContext(ctx, "oauth: authorized", "server", t.server.Redacted(), "issuer", where.as.Issuer, "scopes", strings.Join(tok.Scopes, " "))
	t.remember(ctx, tok)
	return &credential{token: tok, proof: g.proof, site: where}, authorized, nil
}

// withoutRefresh returns a token without its refresh token, which was rejected.
func withoutRefresh(used *credential) *credential {
	if used == nil || used.Refresh == "" {
		return nil
	}
	tok := *used.token
	tok.Refresh = ""
	return &credential{token: &tok, proof: used.proof, site: used.site}
}

// findSite returns the site to get a token from. A step-up uses the site of the current
// token.
func (t *Transport) findSite(ctx context.Context, used *credential, n *renewalReason) (*site, error) {
	if n.stepUp {
		return used.site, nil
	}
	t.mu.Lock()
	near := t.near
	t.mu.Unlock()
	return t.discover(ctx, &n.demand, near, t.opts.Grant.prefers)
}

// chooseScopes returns the scopes to request (basic/authorization, scope selection).
func (t *Transport) chooseScopes(where *site, used *credential, n *renewalReason) []string {
	var wanted []string
	switch {
	case n.stepUp:
		if all := scopeSet(used.Wanted, n.scopes); covers(all, n.scopes) {
			return all
		}
		return scopeSet(n.scopes, used.Wanted) // as many of the old ones as fit
	case len(n.scopes) > 0 || len(t.opts.Scopes) > 0:
		wanted = scopeSet(n.scopes, t.opts.Scopes)
	default:
		wanted = where.scopes
	}
	if n.keepScopes && used != nil && used.Issuer == where.as.Issuer {
		wanted = scopeSet(wanted, used.Wanted) // including scopes added by step-ups
	}
	if len(wanted) > 0 && !t.opts.Grant.isSilent() && slices.Contains(where.as.Scopes, scopeOffline) {
		wanted = scopeSet(wanted, []string{scopeOffline})
	}
	return wanted
}

// scopeOffline makes some authorization servers issue refresh tokens.
const scopeOffline = "offline_access"

// note records the reach and the protocol version of the last request.
func (t *Transport) note(near reach, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.near = near
	t.old = version
}

// noteRefused records that the server rejected a request with a new token, so that another
// new token would not help.
func (t *Transport) noteRefused() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = time.Now()
}

// isPausing reports whether renewals of cred are paused because the server rejected it when
// it was new.
func (t *Transport) isPausing(cred *credential) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cred != nil && cred == t.cred && !t.refused.IsZero() && time.Since(t.refused) < pause
}

// maxFutile is the maximum number of scope sets in futile. If it is reached, every step-up
// counts as futile.
const maxFutile = 4

func (t *Transport) noteFutile(scopes []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.futile) < maxFutile {
		t.futile[futileKey(scopes)] = time.Now()
	}
}

func (t *Transport) isFutile(scopes []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, when := range t.futile {
		if time.Since(when) > 5*pause {
			delete(t.futile, key)
		}
	}
	_, found := t.futile[futileKey(scopes)]
	return found || len(t.futile) == maxFutile
}

func futileKey(scopes []string) string {
	return strings.Join(slices.Sorted(slices.Values(scopes)), " ")
}

// reuseOrRefresh returns a replacement for a used token: a token that another process has
// saved in the store, or a refreshed one. It returns nil if there is none, and an error if
// a retry may succeed.
func (t *Transport) reuseOrRefresh(ctx context.Context, used *credential) (*credential, outcome, error) {
	if used.Refresh == "" {
		return t.adopt(ctx, used.site, used), adopted, nil
	}
	ctx, unlock, err := t.lock(ctx, used.Issuer)
	if err != nil {
		return nil, nothing, fmt.Errorf("oauth: the token is not refreshed, because it cannot be locked: %w", err)
	}
	defer unlock()
	if cred := t.adopt(ctx, used.site, used); cred != nil {
		return cred, adopted, nil
	}
	cred, err := t.refresh(ctx, used)
	if err == nil {
		return cred, refreshed, nil
	}
	if !isFinal(err) {
		return nil, nothing, err
	}
	t.opts.Logger.DebugContext(ctx, "oauth: refresh token refused", "server", t.server.Redacted(), "error", err)
	if cred := t.adopt(ctx, used.site, used); cred != nil {
		return cred, adopted, nil // another process has used the refresh token
	}
	return nil, nothing, nil
}

// lock acquires the lock of the token, waiting until ctx is done. The returned context is
// not canceled with ctx: if the response is not read, the used refresh token is lost.
func (t *Transport) lock(ctx context.Context, issuer string) (held context.Context, unlock func(), err error) {
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	return lock(waiting, t.opts.Store, t.key(issuer))
}

// isFinal reports whether an error means that a refresh token is no longer valid. Some
// authorization servers report this with status 200, with or without an error code.
func isFinal(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status/100 != 5 && e.Status != http.StatusTooManyRequests ||
		errors.Is(err, errNoToken) || errors.Is(err, ErrNoClient)
}

// refresh requests a token with the same scopes.
func (t *Transport) refresh(ctx context.Context, used *credential) (*credential, error) {
	g := &tokenRequest{t: t, site: used.site, scopes: used.Wanted, proof: used.proof}
	client, err := g.clientOf(ctx, used)
	if err != nil {
		return nil, err
	}
	tok, err := g.token(ctx, client, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {used.Refresh}})
	if err != nil {
		g.forget(ctx, client, err)
		return nil, err
	}
	if tok.Refresh == "" {
		tok.Refresh = used.Refresh
	}
	if tok.Scopes == nil {
		tok.Scopes = used.Scopes
	}
	t.opts.Logger.DebugContext(ctx, "oauth: token refreshed", "server", t.server.Redacted(), "issuer", used.Issuer)
	t.remember(ctx, tok)
	return &credential{token: tok, proof: g.proof, site: used.site}, nil
}

// clientOf returns the client that a token was issued to.
func (g *tokenRequest) clientOf(ctx context.Context, cred *credential) (*Client, error) {
	client, err := cred.by, error(nil)
	if client == nil {
		client, err = g.t.opts.Grant.client(ctx, g)
	}
	if err == nil && client.ID != cred.Client {
		err = fmt.Errorf("%w: the token is another client's", ErrNoClient)
	}
	return client, err
}

// key returns the store key of the server's tokens. It uses the server's URL, not the
// identifier in its metadata, which several servers may share.
func (t *Transport) key(issuer string) StoreKey { return StoreKey{issuer, canonical(t.server)} }

// remember saves a token. A failure is logged, and does not affect the request.
func (t *Transport) remember(ctx context.Context, tok *token) {
	if err := save(ctx, t.opts.Store, t.key(tok.Issuer), tok); err != nil {
		t.opts.Logger.WarnContext(ctx, "oauth: the token is not remembered", "error", err)
	}
}

// adopt returns the token in the store if it is usable and differs from the one that was
// used.
func (t *Transport) adopt(ctx context.Context, where *site, used *credential) *credential {
	tok, err := load[token](ctx, t.opts.Store, t.key(where.as.Issuer))
	if err != nil {
		t.opts.Logger.WarnContext(ctx, "oauth: the stored token cannot be read", "error", err)
	}
	switch {
	case !isHeaderValue(tok.Access), tok.Issuer != where.as.Issuer, tok.Resource != where.resource:
		return nil
	case used != nil && used.Access == tok.Access, tok.Refresh == "" && tok.expired(time.Now()):
		return nil
	}
	cred := &credential{token: &tok, site: where}
	if tok.DPoP {
		if cred.proof = t.proverOf(&tok); cred.proof == nil {
			return nil
		}
	} else if t.opts.DPoP != nil {
		return nil
	}
	if trace := mcptrace.ClientTraceFromContext(ctx); trace != nil && trace.CacheHit != nil {
		trace.CacheHit(mcptrace.CacheInfo{Kind: "token", Name: canonical(t.server)})
	}
	return cred
}

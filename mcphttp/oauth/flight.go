// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
)

// A need is why a token is not enough.
type need struct {
	demand
	keepScopes  bool // ask for those again that were had
	stepUp      bool // ask for more scopes
	skipRefresh bool // a refreshed token was refused, too
	refreshOnly bool // do not begin anew
}

// outcome is what a flight has come to.
type outcome int

const (
	nothing    outcome = iota
	superseded         // somebody else has got a token
	adopted            // the store had one
	refreshed
	authorized
)

// A flight is getting a token. There is one at a time, for all who wait.
type flight struct {
	done chan struct{}
	how  outcome
	err  error
}

// fresh is the token to send a request with, nil if there is none yet. One that is
// about to end is renewed, if that bothers nobody. If that fails, the server may
// judge the old one.
func (t *Transport) fresh(ctx context.Context) (*credential, error) {
	cred := t.current()
	if cred == nil || cred.Refresh == "" && !t.opts.Grant.silent() || !cred.expired(time.Now()) || t.pausing(cred) {
		return cred, nil
	}
	n := &need{keepScopes: true, refreshOnly: !t.opts.Grant.silent()}
	if _, err := t.renew(ctx, cred, n); err != nil && ctx.Err() != nil {
		return nil, err
	}
	return t.current(), nil
}

// renew waits until there is another token than the one that was used, if any.
func (t *Transport) renew(ctx context.Context, used *credential, n *need) (outcome, error) {
	t.mu.Lock()
	if t.cred != used {
		t.mu.Unlock()
		return superseded, nil
	}
	f := t.flight
	if f == nil {
		f = &flight{done: make(chan struct{})}
		t.flight = f
		go t.fly(context.WithoutCancel(ctx), f, used, n)
	}
	t.mu.Unlock()
	defer mcp.PauseTimeout(ctx)() // a person may have to log in
	select {
	case <-f.done:
		return f.how, f.err
	case <-ctx.Done():
		return nothing, unauthorized(fmt.Errorf("oauth: not authorized yet: %w", context.Cause(ctx)))
	}
}

// fly gets a token on a context of its own: a refresh token that was used is lost
// if its successor is not waited for.
func (t *Transport) fly(ctx context.Context, f *flight, used *credential, n *need) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.life, func() { cancel(context.Cause(t.life)) })()
	ctx, stop := context.WithTimeoutCause(ctx, t.opts.LoginTimeout, errors.New("oauth: authorization took longer than Options.LoginTimeout"))
	defer stop()
	cred, how, err := t.obtainSafely(ctx, used, n)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if err != nil {
		t.opts.Logger.WarnContext(ctx, "oauth: not authorized", "server", t.server.Redacted(), "error", err)
		err = unauthorized(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && cred != nil {
		t.cred = cred
	}
	f.how, f.err, t.flight = how, err, nil
	close(f.done)
}

// obtainSafely contains panics in what users have written: grants call back.
func (t *Transport) obtainSafely(ctx context.Context, used *credential, n *need) (cred *credential, how outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.opts.Logger.ErrorContext(ctx, "oauth: panic while getting a token", "panic", p, "stack", string(debug.Stack()))
			cred, how, err = nil, nothing, errors.New("oauth: panic while getting a token")
		}
	}()
	return t.obtain(ctx, used, n)
}

// obtain gets a token by the gentlest means.
func (t *Transport) obtain(ctx context.Context, used *credential, n *need) (*credential, outcome, error) {
	if used != nil && !n.stepUp && !n.skipRefresh {
		cred, how, err := t.revive(ctx, used)
		if cred != nil || err != nil {
			return cred, how, err
		}
	}
	if n.refreshOnly {
		return withoutRefresh(used), nothing, nil
	}
	where, err := t.whereabouts(ctx, used, n)
	if err != nil {
		return nil, nothing, err
	}
	if !n.stepUp {
		if cred := t.adopt(ctx, where, used); cred != nil {
			return cred, adopted, nil
		}
	}
	g := &getting{t: t, site: where, scopes: t.choose(where, used, n)}
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

// withoutRefresh is a token whose refresh token was refused.
func withoutRefresh(used *credential) *credential {
	if used == nil || used.Refresh == "" {
		return nil
	}
	tok := *used.token
	tok.Refresh = ""
	return &credential{token: &tok, proof: used.proof, site: used.site}
}

// whereabouts is where to get a token: for more scopes, where the last one was from.
func (t *Transport) whereabouts(ctx context.Context, used *credential, n *need) (*site, error) {
	if n.stepUp {
		return used.site, nil
	}
	t.mu.Lock()
	near := t.near
	t.mu.Unlock()
	return t.discover(ctx, &n.demand, near, t.opts.Grant.prefers)
}

// choose says which scopes to ask for (basic/authorization, scope selection).
func (t *Transport) choose(where *site, used *credential, n *need) []string {
	var wanted []string
	switch {
	case n.stepUp:
		return scopeSet(used.Wanted, n.scopes)
	case len(n.scopes) > 0 || len(t.opts.Scopes) > 0:
		wanted = scopeSet(n.scopes, t.opts.Scopes)
	default:
		wanted = where.scopes
	}
	if n.keepScopes && used != nil && used.Issuer == where.as.Issuer {
		wanted = scopeSet(wanted, used.Wanted) // what was stepped up to
	}
	if len(wanted) > 0 && !t.opts.Grant.silent() && slices.Contains(where.as.Scopes, scopeOffline) {
		wanted = scopeSet(wanted, []string{scopeOffline})
	}
	return wanted
}

// scopeOffline is what some authorization servers give refresh tokens for.
const scopeOffline = "offline_access"

// note remembers where the server is and what it was spoken to in.
func (t *Transport) note(near reach, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.near = near
	t.old = version
}

// useless notes that the server has refused a request with a token that was got for
// it: another would be of no more use.
func (t *Transport) useless() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = time.Now()
}

// pausing reports whether there is no use in another token, for now.
func (t *Transport) pausing(cred *credential) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cred != nil && cred == t.cred && !t.refused.IsZero() && time.Since(t.refused) < pause
}

// maxFutile bounds what is remembered of step-ups that were of no use. Once there
// are so many, all others are taken for the same.
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

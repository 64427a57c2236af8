// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// revive makes a token of one that was used: the store's, if another process has
// been here, or one that its refresh token gives. It is nil if there is none, and an
// error if that may be otherwise in a moment.
func (t *Transport) revive(ctx context.Context, used *credential) (*credential, outcome, error) {
	if cred := t.adopt(ctx, used.site, used); cred != nil {
		return cred, adopted, nil
	}
	if used.Refresh == "" {
		return nil, nothing, nil
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
		return cred, adopted, nil // another process was faster with the refresh token
	}
	return nil, nothing, nil
}

// isFinal reports whether a refresh token has no more to give.
func isFinal(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status/100 == 4 && e.Status != http.StatusTooManyRequests || errors.Is(err, ErrNoClient)
}

// refresh asks for another token of the same scopes.
func (t *Transport) refresh(ctx context.Context, used *credential) (*credential, error) {
	g := &getting{t: t, site: used.site, scopes: used.Wanted, proof: used.proof}
	client, err := used.by, error(nil)
	if client == nil {
		client, err = t.opts.Grant.client(ctx, g)
	}
	if err == nil && client.ID != used.Client {
		err = fmt.Errorf("%w: the refresh token is another client's", ErrNoClient)
	}
	if err != nil {
		return nil, err
	}
	tok, err := g.token(ctx, client, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {used.Refresh}})
	if err != nil {
		g.forget(ctx, err)
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

// key is that of the server's tokens: they are for it alone, even if it calls
// itself by a name that it shares with others.
func (t *Transport) key(issuer string) StoreKey { return StoreKey{issuer, canonical(t.server)} }

// remember saves a token. That it cannot be is the operator's problem, not the
// request's.
func (t *Transport) remember(ctx context.Context, tok *token) {
	if err := save(ctx, t.opts.Store, t.key(tok.Issuer), tok); err != nil {
		t.opts.Logger.WarnContext(ctx, "oauth: the token is not remembered", "error", err)
	}
}

// adopt takes the store's token, if it is good for anything and another one than
// was used.
func (t *Transport) adopt(ctx context.Context, where *site, used *credential) *credential {
	var tok token
	found, err := load(ctx, t.opts.Store, t.key(where.as.Issuer), &tok)
	if err != nil {
		t.opts.Logger.WarnContext(ctx, "oauth: the stored token cannot be read", "error", err)
	}
	switch {
	case !found || err != nil, !isHeaderValue(tok.Access), tok.Issuer != where.as.Issuer, tok.Resource != where.resource:
		return nil
	case used != nil && used.Access == tok.Access, tok.Refresh == "" && tok.expired(time.Now()):
		return nil
	}
	cred := &credential{token: &tok, site: where}
	if tok.DPoP {
		if cred.proof = t.proverOf(&tok); cred.proof == nil {
			return nil
		}
	} else if t.opts.DPoP {
		return nil
	}
	return cred
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Logout ends a login: it forgets the token, removes it from the store, and has the
// authorization server revoke it (RFC 7009). A token that only the store has is found as
// [Transport.Authorize] finds it. The registration of the client is kept. The next request
// that needs a token obtains a new one, and so may requests in flight. Without a token,
// Logout does nothing.
//
// An error after the token was removed means that it may work until it expires. The error
// wraps errors.ErrUnsupported if the authorization server does not revoke tokens.
func (t *Transport) Logout(ctx context.Context) error {
	t.mustBeMade()
	if t.invalid != nil {
		return t.invalid
	}
	cred := t.current()
	var where *site
	if cred != nil {
		where = cred.site
	} else {
		var err error
		if where, err = t.findSite(ctx, nil, &renewalReason{}); err != nil {
			return fmt.Errorf("oauth: not logged out: %w", err)
		}
	}
	key := t.key(where.as.Issuer)
	held, unlock, err := lock(ctx, t.opts.Store, key)
	if err != nil {
		return fmt.Errorf("oauth: not logged out: the token cannot be locked: %w", err)
	}
	defer unlock()
	cred = cmp.Or(t.adopt(held, where, cred), cred) // another process may have refreshed it
	if err := t.opts.Store.Save(held, key, nil); err != nil {
		return fmt.Errorf("oauth: not logged out: the token cannot be removed from the store: %w", err)
	}
	t.mu.Lock()
	t.cred = nil
	t.mu.Unlock()
	if cred == nil {
		return nil
	}
	if err := t.revoke(held, cred); err != nil {
		return fmt.Errorf("oauth: the token was removed, but not revoked: %w", err)
	}
	return nil
}

// revoke has the authorization server revoke a token. With a refresh token, that ends the
// whole grant (RFC 7009, section 2.1).
func (t *Transport) revoke(ctx context.Context, cred *credential) error {
	g := &tokenRequest{t: t, site: cred.site}
	to := g.endpoint()
	if to.url = cred.site.as.RevocationEndpoint; to.url == "" {
		return fmt.Errorf("the metadata of %.200q has no revocation_endpoint: %w", to.issuer, errors.ErrUnsupported)
	}
	client, err := g.clientOf(ctx, cred)
	if err != nil {
		return err
	}
	c := &call{method: http.MethodPost, url: to.url, header: http.Header{}, reach: g.site.reach}
	c.form = url.Values{"token": {cred.Refresh}, "token_type_hint": {"refresh_token"}}
	if cred.Refresh == "" {
		c.form = url.Values{"token": {cred.Access}, "token_type_hint": {"access_token"}}
	}
	if err := client.authenticate(c, to); err != nil {
		return err
	}
	r, err := t.egress.do(ctx, c)
	if err != nil || r.status/100 == 2 {
		return err
	}
	var answer tokenReply
	_ = t.egress.decode(ctx, c, r.body, &answer) // it need not be JSON
	return &Error{Issuer: to.issuer, Status: r.status, Code: answer.Error, Description: answer.Description}
}

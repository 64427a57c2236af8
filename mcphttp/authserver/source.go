// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

const (
	lockAge   = 30 * time.Second // longer than a refresh may take
	lockPause = 100 * time.Millisecond
	lockWait  = 3 * time.Second // a replica that takes longer may have died

	// Tokens are refreshed so long before they expire, or after half of their time if that is
	// short, and are not used any more when they are about to expire.
	ahead    = time.Minute
	lastUses = 5 * time.Second
)

// ErrWithdrawn means that the user's grant has ended: it was revoked or has expired, or the
// provider no longer refreshes its token. The user must log in again.
var ErrWithdrawn = errors.New("authserver: the user must log in again")

// TokenSource returns a source of the provider's token for the caller of the request that ctx
// belongs to, so that a handler can use the provider's API on the user's behalf. It returns nil
// if the caller did not log in at this server. The token is refreshed before it expires, by one
// replica. ctx applies to all calls of Token. Token returns [ErrWithdrawn] if the user must log
// in again.
func (s *Server) TokenSource(ctx context.Context) oauth2.TokenSource {
	s.mustBeMade()
	p := mcp.PrincipalFromContext(ctx)
	if p == nil || p.Issuer != s.issuer {
		return nil
	}
	id, _ := p.Claims[claimGrant].(string)
	if id == "" {
		return nil
	}
	return &source{ctx, s, id}
}

type source struct {
	ctx   context.Context
	s     *Server
	grant string
}

// Token implements [oauth2.TokenSource].
func (t *source) Token() (*oauth2.Token, error) { return t.s.providerToken(t.ctx, t.grant) }

// providerToken returns the provider's token of a grant. If it is to be refreshed, the replica
// that gets the lock does it, and others wait, but not for long while the token can be used.
func (s *Server) providerToken(ctx context.Context, id string) (*oauth2.Token, error) {
	for begun := time.Now(); ; {
		var g grant
		if err := s.get(ctx, kindGrant, id, &g); gone(err) {
			return nil, ErrWithdrawn
		} else if err != nil {
			return nil, err
		}
		if g.Upstream.isFresh() || g.Upstream.isUsable() && time.Since(begun) > lockWait {
			return g.Upstream.token(), nil
		}
		if g.Upstream.Refresh == "" {
			return nil, fmt.Errorf("%w: the provider's token has expired, and cannot be refreshed", ErrWithdrawn)
		}
		locked, unlock, err := s.tryLock(ctx, id)
		if err != nil {
			return nil, err
		}
		if unlock != nil {
			defer unlock()
			return s.refreshUpstream(locked, id)
		}
	}
}

// tryLock locks what the provider is told about a grant. If it is locked, unlock is nil, after a
// pause. What is done with the lock, in the context, is finished once it is begun: the provider
// may have replaced the refresh token.
func (s *Server) tryLock(ctx context.Context, id string) (locked context.Context, unlock func(), err error) {
	err = s.put(ctx, kindLock, id, true, lockAge)
	if err == nil {
		locked, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockAge/2)
		return locked, func() {
			_, _ = s.opts.Values.Take(locked, s.keyOf(kindLock, id)) // it expires otherwise
			cancel()
		}, nil
	}
	if !errors.Is(err, store.ErrConflict) {
		return nil, nil, err
	}
	select {
	case <-time.After(lockPause):
		return nil, nil, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// ended are the errors for a refresh token that was revoked or has expired: that of RFC 6749, and
// that of GitHub.
var ended = []string{"invalid_grant", "bad_refresh_token"}

// refreshUpstream refreshes the provider's token of a grant, which is locked.
func (s *Server) refreshUpstream(ctx context.Context, id string) (*oauth2.Token, error) {
	var g grant
	if err := s.get(ctx, kindGrant, id, &g); gone(err) {
		return nil, ErrWithdrawn
	} else if err != nil {
		return nil, err
	}
	if g.Upstream.isFresh() {
		return g.Upstream.token(), nil // another replica was faster
	}
	return s.renewUpstream(ctx, id, &g)
}

// renewUpstream is refreshUpstream for a token that may be fresh.
func (s *Server) renewUpstream(ctx context.Context, id string, g *grant) (*oauth2.Token, error) {
	e, err := s.provider.discover(ctx)
	if err != nil {
		return nil, err
	}
	old := &oauth2.Token{RefreshToken: g.Upstream.Refresh}
	t, err := e.config.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, s.provider.Client), old).Token()
	if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); ok && slices.Contains(ended, refusal.ErrorCode) {
		return nil, s.withdraw(ctx, id, "the provider no longer refreshes its token")
	}
	if err != nil {
		return nil, withoutBody(err)
	}
	up, err := newUpstream(t)
	if err != nil {
		return nil, err
	}
	told, err := s.provider.idClaims(ctx, e, t)
	if err != nil { // the claims of the login are kept
		s.opts.Logger.WarnContext(ctx, "authserver: the ID token of a refresh is not used", "error", oneLine(err))
	}
	if told != nil && told["sub"] != g.Told["sub"] {
		return nil, s.withdraw(ctx, id, "the provider's token is of another user")
	}
	err = update(ctx, s, kindGrant, id, grantAge, func(v *grant) error {
		v.Upstream = up
		if told != nil {
			v.Told = told
		}
		return nil
	})
	if gone(err) {
		return nil, ErrWithdrawn
	}
	return t, err
}

// withdraw ends a grant, and returns the error for it.
func (s *Server) withdraw(ctx context.Context, id, reason string) error {
	if err := s.end(ctx, id); !errors.Is(err, errGrant) {
		return err
	}
	return fmt.Errorf("%w: %s", ErrWithdrawn, reason)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"

	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"

	"github.com/go-psi/psi/mcp"
)

// An account is a user who has logged in at the provider.
type account struct {
	User     user           `json:"w"`
	Told     map[string]any `json:"t,omitzero"` // the claims of the provider's last ID token
	Info     map[string]any `json:"i,omitzero"` // the user info when it was last asked for
	Upstream upstream       `json:"u"`
}

// claims returns what the provider says about the user. The user info is newer. The two are kept
// apart, so that a claim which is missing in a new one does not remain from the one before.
func (a *account) claims() map[string]any {
	all := make(map[string]any, len(a.Told)+len(a.Info))
	maps.Copy(all, a.Told)
	known, _ := a.Told["email"].(string)
	if now, ok := a.Info["email"]; ok && now != any(known) {
		delete(all, "email_verified") // that was of another address
	}
	maps.Copy(all, a.Info)
	return all
}

// A user is a principal that Options.Identify has returned.
type user struct {
	Subject string         `json:"s"`
	Limited bool           `json:"l,omitzero"` // only Scopes
	Scopes  []string       `json:"o,omitzero"`
	Claims  map[string]any `json:"c,omitzero"`
}

type tokenKey struct{}

// TokenFromContext returns the provider's token of the user about whom Options.Identify is
// asked, for example to look up the user's organizations. It returns nil if the token has
// expired, and for any other context: handlers use [Server.TokenSource].
func TokenFromContext(ctx context.Context) *oauth2.Token {
	t, _ := ctx.Value(tokenKey{}).(*oauth2.Token)
	if !t.Valid() {
		return nil
	}
	return t
}

// identify sets the user of an account from the provider's claims. Its error denies the user.
func (s *Server) identify(ctx context.Context, a *account) error {
	claims := a.claims()
	if text, err := json.Marshal([]any{a.Told, a.Info}); err != nil || len(text) > maxTold {
		return errors.New("authserver: the provider's claims are too long")
	}
	subject, _ := claims["sub"].(string)
	p := &mcp.Principal{Subject: subject}
	if s.opts.Identify != nil {
		var err error
		if p, err = s.opts.Identify(context.WithValue(ctx, tokenKey{}, a.Upstream.token()), cloneClaims(claims)); err != nil {
			return err
		}
	}
	if p == nil || p.Subject == "" || len(p.Subject) > maxSubject {
		return fmt.Errorf("authserver: the user has no Subject, or one of more than %d bytes", maxSubject)
	}
	extra, err := json.Marshal(p.Claims)
	if err != nil || len(extra) > maxExtraBytes {
		return errors.New("authserver: the principal's Claims are no JSON, or too long")
	}
	a.User = user{p.Subject, p.Scopes != nil, p.Scopes, p.Claims}
	return nil
}

// identifyAgain asks about the user of a grant, before the client gets new tokens: the
// provider if it can be asked, and then Options.Identify. A user who may not come in any more
// loses the grant. What is in g changes accordingly.
func (s *Server) identifyAgain(ctx context.Context, id string, g *grant) error {
	if !g.Upstream.isFresh() && g.Upstream.Refresh != "" {
		if _, err := s.providerToken(ctx, id); errors.Is(err, ErrWithdrawn) {
			return errGrant
		} else if err != nil {
			return err
		}
		if err := s.reload(ctx, id, g); err != nil {
			return err
		}
	}
	before := g.account
	err := s.provider.refreshInfo(ctx, &g.account)
	if errors.Is(err, errRefused) {
		if err = s.askLocked(ctx, id, g); gone(err) {
			return err
		} else if errors.Is(err, ErrWithdrawn) {
			return errGrant
		}
	}
	if err == nil {
		err = s.identify(ctx, &g.account)
	}
	if err == nil && g.User.Subject != before.User.Subject {
		err = errors.New("authserver: the user has another Subject than before")
	}
	if err == nil {
		return nil
	}
	if isUnsure(ctx, err) {
		return err
	}
	s.opts.Logger.WarnContext(ctx, "authserver: a grant ends: the user may not log in any more", slog.String("error", oneLine(err)))
	return s.end(ctx, id)
}

// isUnsure reports whether an error says nothing about the user, so that it can be tried again.
func isUnsure(ctx context.Context, err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || ctx.Err() != nil || errors.Is(err, errNoAnswer)
}

// askLocked asks the provider about the user once more, while no other request can replace the
// token with which it asks: providers end a token when they refresh it. If the token is refused again,
// it is refreshed, which a user who has left cannot do.
func (s *Server) askLocked(ctx context.Context, id string, g *grant) error {
	for {
		locked, unlock, err := s.tryLock(ctx, id)
		if err == nil && unlock == nil {
			continue
		}
		if err == nil {
			defer unlock()
			err = s.reload(locked, id, g)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		if err = s.provider.refreshInfo(locked, &g.account); !errors.Is(err, errRefused) || g.Upstream.Refresh == "" {
			return err
		}
		if _, err = s.renewUpstream(locked, id, g); err == nil {
			err = s.reload(locked, id, g)
		}
		if errors.Is(err, ErrWithdrawn) {
			return err
		} else if err != nil {
			return fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		return s.provider.refreshInfo(locked, &g.account)
	}
}

// reload reads a grant again.
func (s *Server) reload(ctx context.Context, id string, g *grant) error {
	*g = grant{}
	return s.get(ctx, kindGrant, id, g)
}

// scopes returns what the client gets: what the user has granted to it, and has.
func (g *grant) scopes() []string {
	return slices.DeleteFunc(slices.Clone(g.Granted), func(scope string) bool {
		return g.User.Limited && !slices.Contains(g.User.Scopes, scope)
	})
}

// cloneClaims returns a copy that Identify may change and keep.
func cloneClaims(claims map[string]any) (c map[string]any) {
	data, err := json.Marshal(claims)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil { // cannot happen: they were JSON
		panic(err)
	}
	return c
}

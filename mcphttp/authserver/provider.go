// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/mcphttp/auth"
)

const (
	providerTime  = 10 * time.Second
	maxProvider   = 1 << 20  // bytes of a response of the provider
	maxUpstream   = 64 << 10 // bytes of a provider's tokens
	maxTold       = 32 << 10 // bytes of a provider's claims
	maxExtraBytes = 4 << 10  // bytes of the claims that Identify adds
	maxSubject    = 1 << 10  // bytes
)

// A provider is a client of the identity provider.
type provider struct {
	Provider
	callback string

	discovery async.Flight[struct{}, *endpoints] // one at a time; logins that come meanwhile share its outcome
	endpoints atomic.Pointer[endpoints]
}

// endpoints are what was discovered, once.
type endpoints struct {
	config *oauth2.Config
	ids    *auth.JWT // verifies ID tokens; nil without an issuer
}

// ownParams are the parameters of an authorization request that AuthParams would break.
var ownParams = []string{"client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "nonce", "code_challenge", "code_challenge_method"}

func newProvider(p *Provider, callback string) (*provider, error) {
	c := &provider{Provider: *p, callback: callback, discovery: async.Flight[struct{}, *endpoints]{Detached: true}}
	if c.ClientID == "" || c.Issuer == "" && (c.AuthURL == "" || c.TokenURL == "" || c.UserInfoURL == "") {
		return nil, errors.New("authserver: Options.Provider needs a ClientID, and an Issuer or AuthURL, TokenURL and UserInfoURL")
	}
	if c.Issuer != "" && c.SubjectClaim != "" {
		return nil, errors.New("authserver: Options.Provider: a SubjectClaim is for providers without an Issuer")
	}
	if c.Issuer != "" && !slices.Contains(c.Scopes, "openid") {
		return nil, errors.New("authserver: Options.Provider: with an Issuer, its Scopes must contain openid, or no ID token comes")
	}
	for name := range c.AuthParams {
		if slices.Contains(ownParams, name) {
			return nil, fmt.Errorf("authserver: Options.Provider: AuthParams must not contain %q, which this server sets", name)
		}
	}
	for _, text := range []string{c.Issuer, c.AuthURL, c.TokenURL, c.UserInfoURL} {
		if text != "" && !isEndpoint(text) {
			return nil, errors.New("authserver: Options.Provider: its URLs must be https, or http on this machine")
		}
	}
	if c.Client == nil {
		c.Client = &http.Client{}
	}
	client := *c.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Timeout = cmp.Or(client.Timeout, providerTime)
	c.Client = &client
	return c, nil
}

func isEndpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && u.Fragment == "" && (u.Scheme == "https" || u.Scheme == "http" && network.IsLoopback(u.Hostname()))
}

// discover returns the provider's endpoints. A failure is not kept.
func (p *provider) discover(ctx context.Context) (*endpoints, error) {
	if e := p.endpoints.Load(); e != nil {
		return e, nil
	}
	return p.discovery.Do(ctx, struct{}{}, p.discoverNow)
}

func (p *provider) discoverNow(ctx context.Context) (*endpoints, error) {
	e := &endpoints{config: &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURL: p.callback, Scopes: p.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: p.AuthURL, TokenURL: p.TokenURL},
	}}
	if p.Issuer != "" {
		var doc struct {
			Issuer    string `json:"issuer"`
			Authorize string `json:"authorization_endpoint"`
			Token     string `json:"token_endpoint"`
			Keys      string `json:"jwks_uri"`
		}
		if err := p.getJSON(ctx, strings.TrimSuffix(p.Issuer, "/")+"/.well-known/openid-configuration", "", &doc); err != nil {
			return nil, err
		}
		if doc.Issuer != p.Issuer || !isEndpoint(doc.Authorize) || !isEndpoint(doc.Token) || !isEndpoint(doc.Keys) {
			return nil, fmt.Errorf("authserver: the metadata of the provider %q has another issuer, %.200q, or lacks a URL", p.Issuer, doc.Issuer)
		}
		e.config.Endpoint.AuthURL, e.config.Endpoint.TokenURL = cmp.Or(p.AuthURL, doc.Authorize), cmp.Or(p.TokenURL, doc.Token)
		ids, err := auth.NewJWT(p.Issuer, p.ClientID, &auth.JWTOptions{JWKSURL: doc.Keys, Client: p.Client})
		if err != nil {
			return nil, err
		}
		e.ids = ids
	}
	p.endpoints.Store(e)
	return e, nil
}

// getJSON reads a document of the provider, with a token unless it is "".
func (p *provider) getJSON(ctx context.Context, from, token string, doc any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := p.Client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(http.MaxBytesReader(nil, res.Body, maxProvider))
	if err != nil {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		return errRefused
	case res.StatusCode == http.StatusForbidden: // or there were too many requests
		return fmt.Errorf("%w: %w", errNoAnswer, errRefused)
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%w: %q answered with status %d", errNoAnswer, from, res.StatusCode)
	}
	if err := json.Unmarshal(body, doc); err != nil {
		return fmt.Errorf("%w: %q answered with other JSON than expected", errNoAnswer, from)
	}
	return nil
}

// toProvider stores a login and sends the browser to the provider. The state is its key.
func (s *Server) toProvider(w http.ResponseWriter, r *http.Request, l *login) {
	if !s.limit.allow(r, costLogin) {
		s.busyPage(w)
		return
	}
	e, err := s.provider.discover(r.Context())
	if err != nil {
		s.failurePage(w, r, err)
		return
	}
	state := newID()
	l.Nonce, l.Verifier = newID(), oauth2.GenerateVerifier()
	if err := s.put(r.Context(), kindLogin, state, l, loginAge); err != nil {
		s.failurePage(w, r, err)
		return
	}
	params := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(l.Verifier)}
	if e.ids != nil {
		params = append(params, oauth2.SetAuthURLParam("nonce", l.Nonce))
	}
	for name, value := range s.provider.AuthParams {
		params = append(params, oauth2.SetAuthURLParam(name, value))
	}
	s.pageHeader(w)
	w.Header().Set("Location", e.config.AuthCodeURL(state, params...))
	w.WriteHeader(http.StatusSeeOther)
}

// upstream is a provider's token.
type upstream struct {
	Access  string    `json:"a"`
	Type    string    `json:"t,omitzero"`
	Refresh string    `json:"r,omitzero"`
	Expiry  time.Time `json:"e,omitzero"`
	Renew   time.Time `json:"n,omitzero"` // from then on it is refreshed
}

func (u *upstream) isFresh() bool  { return u.Expiry.IsZero() || time.Now().Before(u.Renew) }
func (u *upstream) isUsable() bool { return u.Expiry.IsZero() || time.Until(u.Expiry) > lastUses }

func (u *upstream) token() *oauth2.Token {
	return &oauth2.Token{AccessToken: u.Access, TokenType: u.Type, RefreshToken: u.Refresh, Expiry: u.Expiry}
}

func newUpstream(t *oauth2.Token) (upstream, error) {
	if len(t.AccessToken)+len(t.RefreshToken) > maxUpstream {
		return upstream{}, fmt.Errorf("authserver: the provider's tokens are longer than %d bytes", maxUpstream)
	}
	renew := t.Expiry
	if !renew.IsZero() {
		renew = renew.Add(-max(lastUses, min(ahead, time.Until(renew)/2)))
	}
	return upstream{t.AccessToken, t.TokenType, t.RefreshToken, t.Expiry, renew}, nil
}

// exchange redeems the provider's code for the account of its user, whom nobody has identified
// yet.
func (p *provider) exchange(ctx context.Context, code string, l *login) (*account, error) {
	e, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	t, err := e.config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, p.Client), code, oauth2.VerifierOption(l.Verifier))
	if err != nil {
		return nil, withoutBody(err)
	}
	a := &account{}
	if a.Upstream, err = newUpstream(t); err != nil {
		return nil, err
	}
	if e.ids != nil {
		if a.Told, err = p.idClaims(ctx, e, t); err != nil {
			return nil, err
		}
		if nonce, _ := a.Told["nonce"].(string); !sameText(nonce, l.Nonce) {
			return nil, errors.New("authserver: the provider's ID token is not of this login")
		}
	}
	return a, p.refreshInfo(ctx, a)
}

// idClaims returns the claims of the ID token that came with a token: nil for a provider
// without ID tokens, and if none came.
func (p *provider) idClaims(ctx context.Context, e *endpoints, t *oauth2.Token) (map[string]any, error) {
	raw, _ := t.Extra("id_token").(string)
	if e.ids == nil || raw == "" {
		return nil, nil //nolint:nilnil // documented
	}
	id, err := e.ids.VerifyToken(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("authserver: the provider's ID token: %w", err)
	}
	if party, ok := id.Claims["azp"].(string); ok && party != p.ClientID {
		return nil, errors.New("authserver: the provider's ID token is for another client")
	}
	return id.Claims, nil
}

// errNoAnswer means that the provider does not say who a user is. It may later.
var errNoAnswer = errors.New("authserver: the provider does not say who the user is")

// errRefused means that the provider does not accept its token any more.
var errRefused = errors.New("authserver: the provider does not accept its token")

// refreshInfo replaces the user info of an account, at providers that have it. What is known is kept
// if the token has ended, and cannot be refreshed.
func (p *provider) refreshInfo(ctx context.Context, a *account) error {
	if p.UserInfoURL == "" || a.Info != nil && !a.Upstream.token().Valid() {
		return nil
	}
	info, err := p.userInfo(ctx, a.Upstream.Access)
	if err != nil {
		return err
	}
	if known, ok := a.claims()["sub"]; ok && info["sub"] != known {
		return errors.New("authserver: the provider's user info is of another user")
	}
	a.Info = info
	return nil
}

// userInfo returns the user info, with the member sub.
func (p *provider) userInfo(ctx context.Context, token string) (map[string]any, error) {
	var claims map[string]any
	if err := p.getJSON(ctx, p.UserInfoURL, token, &claims); err != nil {
		return nil, err
	}
	switch subject := claims[cmp.Or(p.SubjectClaim, "sub")].(type) {
	case string:
		claims["sub"] = subject
	case float64:
		if subject != math.Trunc(subject) || math.Abs(subject) >= 1<<53 {
			return nil, fmt.Errorf("%w: the user has an ID that is no integer", errNoAnswer)
		}
		claims["sub"] = strconv.FormatInt(int64(subject), 10)
	default:
		return nil, fmt.Errorf("%w: the user has no ID", errNoAnswer)
	}
	return claims, nil
}

// withoutBody removes what the provider has said from an error that is logged: it may repeat
// secrets.
func withoutBody(err error) error {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := 0
		if e.Response != nil {
			status = e.Response.StatusCode
		}
		return fmt.Errorf("authserver: the provider refuses: status %d, %.50q", status, e.ErrorCode)
	}
	return err
}

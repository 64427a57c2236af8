// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"github.com/go-psi/psi/internal/redact"
)

// AuthorizationCode obtains tokens for a user who authorizes the program in a browser. It
// is the authorization code grant with PKCE. The client is one of Clients, the client at
// MetadataURL, or a new Registration, whichever is possible first.
type AuthorizationCode struct {
	// Redirector sends the user to the authorization server and receives the redirect back.
	// Nil means &Loopback{}.
	Redirector Redirector
	// Clients are clients that were registered in advance, each with its issuer.
	Clients []Client
	// MetadataURL is the URL of the program's client metadata document. It is the
	// client_id at authorization servers that support that. The document must list the
	// Redirector's redirect URI. "" means that there is none.
	MetadataURL string
	// MetadataKey authenticates the client of MetadataURL, if its metadata document
	// requires it. Nil means no authentication.
	MetadataKey *Key
	// Registration is used to register the program if there is no other client. If the user
	// does not come back in time, the next login registers it again: an authorization
	// server that has forgotten a client reports this only to the user.
	Registration Registration
	// NoRegistration disables registration.
	NoRegistration bool
	// RequireIssuer rejects a redirect that lacks the issuer of the authorization server
	// (iss, RFC 9207). Otherwise, a hostile authorization server can send users to an
	// honest one that does not send iss, and receive the resulting code. By default, such
	// redirects are accepted, because many authorization servers do not send iss. The
	// client logs a warning if the page that the user was sent to is at neither the origin
	// of the issuer nor that of the token endpoint.
	RequireIssuer bool
}

func (a *AuthorizationCode) isSilent() bool { return false }

func (a *AuthorizationCode) check() error {
	for i := range a.Clients {
		if err := a.Clients[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (a *AuthorizationCode) prefers(issuer string) bool {
	return slices.ContainsFunc(a.Clients, func(c Client) bool { return sameIssuer(c.Issuer, issuer) })
}

// redirector returns the configured Redirector or the default.
func (a *AuthorizationCode) redirector() Redirector {
	if a.Redirector == nil {
		return &Loopback{}
	}
	return a.Redirector
}

// client returns a client that was configured or registered before.
func (a *AuthorizationCode) client(ctx context.Context, g *tokenRequest) (*Client, error) {
	as := g.site.as
	for i := range a.Clients {
		if sameIssuer(a.Clients[i].Issuer, as.Issuer) {
			return &a.Clients[i], nil
		}
	}
	var elsewhere error
	for i := range a.Clients {
		if a.Clients[i].Issuer != "" {
			elsewhere = fmt.Errorf("%w: %w: the clients that were registered beforehand are for others than %q", ErrNoClient, ErrIssuer, as.Issuer)
			continue
		}
		if elsewhere = g.t.checkIssuer("", as.Issuer); elsewhere == nil {
			return &a.Clients[i], nil
		}
	}
	if a.MetadataURL != "" && as.MetadataClients {
		return &Client{Issuer: as.Issuer, ID: a.MetadataURL, Key: a.MetadataKey}, nil
	}
	known := g.registered(ctx)
	switch {
	case known != nil && !a.NoRegistration:
		return known.client(as.Issuer), nil
	case elsewhere != nil && (a.NoRegistration || as.RegistrationEndpoint == ""):
		return nil, elsewhere
	}
	return nil, errUnregistered
}

func (a *AuthorizationCode) obtain(ctx context.Context, g *tokenRequest) (*token, error) {
	as := g.site.as
	if silent := as.mayOmitPKCE && as.Challenges == nil; !silent && !slices.Contains(as.Challenges, "S256") {
		return nil, fmt.Errorf("%w: the metadata of %q does not promise PKCE with S256; if it promises nothing, see Options.AuthorizationServerMetadata", ErrMetadata, as.Issuer)
	}
	to, err := parseURL(as.AuthorizationEndpoint)
	if err == nil && origin(to) != g.t.home {
		err = g.site.reach.checkURL(to)
	}
	if err != nil {
		return nil, fmt.Errorf("authorization_endpoint: %w", err)
	}
	redirect, err := a.redirector().Open(ctx, g.registeredURI(ctx))
	if err != nil {
		return nil, err
	}
	defer redirect.Close()
	client, err := a.identify(ctx, g, redirect.RedirectURI())
	if err != nil {
		return nil, err
	}
	r := &authRequest{state: rand.Text(), verifier: oauth2.GenerateVerifier(), uri: redirect.RedirectURI(), as: as}
	to.RawQuery = r.query(to.Query(), client, g)
	params, err := redirect.Authorize(ctx, to.String())
	if err != nil {
		g.doubt(ctx, client)
		return nil, err
	}
	code, err := r.code(params)
	if err == nil && !params.Has("iss") {
		err = a.acceptUnnamed(ctx, g, to)
	}
	if err != nil {
		return nil, err
	}
	tok, err := g.token(ctx, client, url.Values{
		"grant_type": {grantCode}, "code": {code}, "redirect_uri": {r.uri}, "code_verifier": {r.verifier},
	})
	if err != nil {
		g.forget(ctx, client, err)
	}
	return tok, err
}

// identify returns the client, and registers it if necessary.
func (a *AuthorizationCode) identify(ctx context.Context, g *tokenRequest, redirectURI string) (*Client, error) {
	client, err := a.client(ctx, g)
	if !errors.Is(err, errUnregistered) {
		if err != nil || !client.dynamic {
			return client, err
		}
		if known := g.registered(ctx); known != nil && !known.Doubtful && slices.Contains(known.RedirectURIs, redirectURI) {
			return client, nil
		}
	}
	if a.NoRegistration {
		return nil, fmt.Errorf("%w: nothing is arranged with %q", ErrNoClient, g.site.as.Issuer)
	}
	return g.register(ctx, &a.Registration, redirectURI)
}

// An authRequest is an authorization request, with the values that bind the redirect to
// it.
type authRequest struct {
	state, verifier, uri string
	as                   *serverMetadata
}

// query adds the authorization request to the query of the endpoint's URL.
func (r *authRequest) query(q url.Values, client *Client, g *tokenRequest) string {
	q.Set("response_type", "code")
	q.Set("client_id", client.ID)
	q.Set("redirect_uri", r.uri)
	q.Set("state", r.state)
	q.Set("code_challenge", oauth2.S256ChallengeFromVerifier(r.verifier))
	q.Set("code_challenge_method", "S256")
	g.setResource(q)
	if len(g.scopes) > 0 {
		q.Set("scope", strings.Join(g.scopes, " "))
	}
	if g.proof != nil {
		q.Set("dpop_jkt", g.proof.thumb)
	}
	return q.Encode()
}

// code checks that a redirect answers this request and comes from the right server (RFC
// 9207), before it reads anything else. It returns the authorization code.
func (r *authRequest) code(params url.Values) (string, error) {
	for _, name := range []string{"state", "iss", "error", "code"} {
		if len(params[name]) > 1 {
			return "", fmt.Errorf("%w: it has %q more than once", ErrState, name)
		}
	}
	if subtle.ConstantTimeCompare([]byte(params.Get("state")), []byte(r.state)) != 1 {
		return "", fmt.Errorf("%w: its state is not the one that was sent", ErrState)
	}
	if params.Has("iss") || r.as.SendsIssuer {
		if got := params.Get("iss"); got != r.as.Issuer {
			return "", fmt.Errorf("%w: the redirect is from %.200q, want %q", ErrIssuer, redact.URL(got), r.as.Issuer)
		}
	}
	if params.Has("error") {
		return "", &Error{Issuer: r.as.Issuer, Code: params.Get("error"), Description: params.Get("error_description")}
	}
	if code := params.Get("code"); code != "" {
		return code, nil
	}
	return "", fmt.Errorf("%w: it has no code", ErrState)
}

func isAtOrigin(page *url.URL, of string) bool {
	u, err := parseURL(of)
	return err == nil && origin(page) == origin(u)
}

// acceptUnnamed decides whether to accept a redirect that does not name its authorization
// server. It may come from a server other than the one that will receive the code, even if
// page, to which the user was sent, belongs to the right server, because that server can
// redirect the user. A redirect URI for each issuer would not help: an honest server with
// open registration registers any of them for an attacker.
func (a *AuthorizationCode) acceptUnnamed(ctx context.Context, g *tokenRequest, page *url.URL) error {
	as := g.site.as
	switch {
	case a.RequireIssuer:
		return fmt.Errorf("%w: the redirect has no iss, and users of %q are sent to %s", ErrIssuer, as.Issuer, origin(page))
	case !isAtOrigin(page, as.Issuer) && !isAtOrigin(page, as.TokenEndpoint):
		g.t.opts.Logger.WarnContext(ctx, "oauth: the redirect does not name the authorization server, whose pages are on another origin; see AuthorizationCode.RequireIssuer",
			"issuer", as.Issuer, "pages", origin(page), "token_endpoint", as.TokenEndpoint)
	}
	return nil
}

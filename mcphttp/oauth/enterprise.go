// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Enterprise gets tokens by a user's login at the identity provider of an
// enterprise (extension io.modelcontextprotocol/enterprise-managed-authorization):
// the provider issues a grant for the MCP server, an ID-JAG, which the server's
// authorization server takes. The user need not be asked again.
type Enterprise struct {
	// Provider is the enterprise's.
	Provider IdentityProvider
	// Subject returns what the user's login at the provider has left. It is called
	// every time, and must not be nil.
	Subject func(ctx context.Context) (SubjectToken, error)
	// Client is who the program is at the MCP server's authorization server.
	Client Client
}

// An IdentityProvider is configured by whoever administers it: its addresses may be
// within the enterprise's network.
type IdentityProvider struct {
	// Issuer finds its metadata if there is no TokenEndpoint.
	Issuer string
	// TokenEndpoint is where tokens are exchanged. "" means to look it up.
	TokenEndpoint string
	// Client is who the program is at the provider. Its Issuer is not read.
	Client Client
}

// A SubjectToken says who the user is.
type SubjectToken struct {
	Token string
	// Type is the URN of the token's type. "" means
	// urn:ietf:params:oauth:token-type:id_token.
	Type string
}

const (
	typeIDToken = "urn:ietf:params:oauth:token-type:id_token" //nolint:gosec // a name
	typeIDJAG   = "urn:ietf:params:oauth:token-type:id-jag"
)

func (e *Enterprise) silent() bool { return true }

func (e *Enterprise) check() error {
	if err := e.Client.check(); err != nil {
		return err
	}
	if e.Subject == nil {
		return errors.New("oauth: Enterprise.Subject must not be nil")
	}
	return nil
}

func (e *Enterprise) prefers(issuer string) bool { return e.Client.Issuer == issuer }

func (e *Enterprise) client(_ context.Context, g *getting) (*Client, error) {
	return &e.Client, g.t.only(e.Client.Issuer, g.site.as.Issuer)
}

func (e *Enterprise) obtain(ctx context.Context, g *getting) (*token, error) {
	client, err := e.client(ctx, g)
	if err != nil {
		return nil, err
	}
	grant, err := e.exchange(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("oauth: identity provider: %w", err)
	}
	return g.token(ctx, client, url.Values{"grant_type": {grantBearer}, "assertion": {grant}})
}

// exchange has the provider issue an ID-JAG (RFC 8693).
func (e *Enterprise) exchange(ctx context.Context, g *getting) (string, error) {
	provider, err := e.provider(ctx, g)
	if err != nil {
		return "", err
	}
	subject, err := e.Subject(ctx)
	if err != nil {
		return "", err
	}
	if subject.Type == "" {
		subject.Type = typeIDToken
	}
	form := url.Values{
		"grant_type":           {grantExchange},
		"requested_token_type": {typeIDJAG},
		"audience":             {g.site.as.Issuer},
		"resource":             {g.site.resource},
		"subject_token":        {subject.Token},
		"subject_token_type":   {subject.Type},
	}
	if len(g.scopes) > 0 {
		form.Set("scope", strings.Join(g.scopes, " "))
	}
	answer, err := g.ask(ctx, provider, &e.Provider.Client, nil, form)
	if err != nil {
		return "", err
	}
	if answer.IssuedType != typeIDJAG {
		return "", fmt.Errorf("it issued a token of type %.100q, want %s", answer.IssuedType, typeIDJAG)
	}
	return answer.Access, nil
}

func (e *Enterprise) provider(ctx context.Context, g *getting) (*endpoint, error) {
	p := &e.Provider
	if p.TokenEndpoint != "" {
		return &endpoint{url: p.TokenEndpoint, issuer: p.Issuer, configured: true}, nil
	}
	if p.Issuer == "" {
		return nil, errors.New("neither Issuer nor TokenEndpoint is configured")
	}
	as, err := g.t.egress.server(ctx, p.Issuer, &call{method: http.MethodGet, anywhere: true})
	if err != nil {
		return nil, err
	}
	return &endpoint{url: as.TokenEndpoint, issuer: as.Issuer, methods: as.AuthMethods, algorithms: as.AuthAlgorithms, configured: true}, nil
}

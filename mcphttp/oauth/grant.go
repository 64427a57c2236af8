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

// A Grant is a way to get tokens: [*AuthorizationCode], [*ClientCredentials],
// [*EnterpriseGrant] or [*WorkloadIdentity]. A grant must not be changed once a transport
// has it; several may share one.
type Grant interface {
	// obtain gets a token at the site.
	obtain(ctx context.Context, g *tokenRequest) (*token, error)
	// client is who asks for tokens at the site, without registering anew.
	client(ctx context.Context, g *tokenRequest) (*Client, error)
	// prefers reports whether something is arranged with an issuer.
	prefers(issuer string) bool
	// silent reports whether nobody is bothered.
	isSilent() bool
	// check says why the grant must not be used as it is configured.
	check() error
}

// ClientCredentials get tokens for the program itself, without a user (extension
// io.modelcontextprotocol/oauth-client-credentials).
type ClientCredentials struct {
	// Client is who the program is. It has a secret or a key, and therefore an issuer.
	Client Client
}

func (c *ClientCredentials) isSilent() bool { return true }

func (c *ClientCredentials) check() error { return c.Client.check() }

func (c *ClientCredentials) prefers(issuer string) bool { return c.Client.Issuer == issuer }

func (c *ClientCredentials) client(_ context.Context, g *tokenRequest) (*Client, error) {
	return &c.Client, g.t.checkIssuer(c.Client.Issuer, g.site.as.Issuer)
}

func (c *ClientCredentials) obtain(ctx context.Context, g *tokenRequest) (*token, error) {
	client, err := c.client(ctx, g)
	if err != nil {
		return nil, err
	}
	return g.token(ctx, client, url.Values{"grant_type": {grantClientCredentials}})
}

// An AuthorizationServer is where something is going to be sent.
type AuthorizationServer struct {
	Issuer        string
	TokenEndpoint string
}

// WorkloadIdentity gets tokens with a JWT that the platform on which the program
// runs has issued to it. There is no registration. A JWT that is refused is not
// sent again for the same request.
type WorkloadIdentity struct {
	// Issuer is the authorization server that trusts the platform; no other gets a
	// JWT. "" means the first that the MCP server names: only for JWTs of which a
	// stranger has no use, because they are made for the one who is asked.
	Issuer string
	// Assertion returns a JWT for an authorization server. It is called every time, and
	// must not be nil.
	Assertion func(ctx context.Context, to AuthorizationServer) (string, error)
}

func (w *WorkloadIdentity) isSilent() bool { return true }

func (w *WorkloadIdentity) check() error {
	if w.Assertion == nil {
		return errors.New("oauth: WorkloadIdentity.Assertion must not be nil")
	}
	return nil
}

func (w *WorkloadIdentity) prefers(issuer string) bool { return w.Issuer == issuer }

func (w *WorkloadIdentity) client(_ context.Context, g *tokenRequest) (*Client, error) {
	return &Client{}, g.t.checkIssuer(w.Issuer, g.site.as.Issuer)
}

func (w *WorkloadIdentity) obtain(ctx context.Context, g *tokenRequest) (*token, error) {
	client, err := w.client(ctx, g)
	if err != nil {
		return nil, err
	}
	assertion, err := w.Assertion(ctx, AuthorizationServer{g.site.as.Issuer, g.site.as.TokenEndpoint})
	if err != nil {
		return nil, fmt.Errorf("oauth: assertion: %w", err)
	}
	return g.token(ctx, client, url.Values{"grant_type": {grantJWTBearer}, "assertion": {assertion}})
}

// EnterpriseGrant gets tokens by a user's login at the identity provider of an
// enterprise (extension io.modelcontextprotocol/enterprise-managed-authorization):
// the provider issues a grant for the MCP server, an ID-JAG, which the server's
// authorization server takes. The user need not be asked again.
type EnterpriseGrant struct {
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

func (e *EnterpriseGrant) isSilent() bool { return true }

func (e *EnterpriseGrant) check() error {
	if err := e.Client.check(); err != nil {
		return err
	}
	if e.Subject == nil {
		return errors.New("oauth: EnterpriseGrant.Subject must not be nil")
	}
	return nil
}

func (e *EnterpriseGrant) prefers(issuer string) bool { return e.Client.Issuer == issuer }

func (e *EnterpriseGrant) client(_ context.Context, g *tokenRequest) (*Client, error) {
	return &e.Client, g.t.checkIssuer(e.Client.Issuer, g.site.as.Issuer)
}

func (e *EnterpriseGrant) obtain(ctx context.Context, g *tokenRequest) (*token, error) {
	client, err := e.client(ctx, g)
	if err != nil {
		return nil, err
	}
	grant, err := e.exchange(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("oauth: identity provider: %w", err)
	}
	return g.token(ctx, client, url.Values{"grant_type": {grantJWTBearer}, "assertion": {grant}})
}

// exchange has the provider issue an ID-JAG (RFC 8693).
func (e *EnterpriseGrant) exchange(ctx context.Context, g *tokenRequest) (string, error) {
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
	answer, err := g.postToken(ctx, provider, &e.Provider.Client, nil, form)
	if err != nil {
		return "", err
	}
	if answer.IssuedType != typeIDJAG {
		return "", fmt.Errorf("it issued a token of type %.100q, want %s", answer.IssuedType, typeIDJAG)
	}
	return answer.Access, nil
}

func (e *EnterpriseGrant) provider(ctx context.Context, g *tokenRequest) (*endpoint, error) {
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

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

// A Grant is a way to obtain tokens: [*AuthorizationCode], [*ClientCredentials],
// [*EnterpriseGrant] or [*WorkloadIdentity]. A grant must not be modified after first use.
// Several transports may share one.
type Grant interface {
	// obtain returns a new token.
	obtain(ctx context.Context, g *tokenRequest) (*token, error)
	// client returns the client to use, without registering a new one.
	client(ctx context.Context, g *tokenRequest) (*Client, error)
	// prefers reports whether the grant has credentials for an issuer.
	prefers(issuer string) bool
	// isSilent reports whether the grant works without a user.
	isSilent() bool
	// check returns an error if the configuration of the grant is invalid.
	check() error
}

// ClientCredentials obtains tokens for the program itself, without a user (extension
// io.modelcontextprotocol/oauth-client-credentials).
type ClientCredentials struct {
	// Client is the registered client. It has a secret or a key, and therefore an issuer.
	Client Client
}

func (c *ClientCredentials) isSilent() bool { return true }

func (c *ClientCredentials) check() error { return c.Client.check() }

func (c *ClientCredentials) prefers(issuer string) bool { return sameIssuer(c.Client.Issuer, issuer) }

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

// An AuthorizationServer identifies the recipient of an assertion.
type AuthorizationServer struct {
	Issuer        string
	TokenEndpoint string
}

// WorkloadIdentity obtains tokens with a JWT that the platform has issued to the program.
// The program is not registered as a client. A JWT that was rejected is not sent again for
// the same request.
type WorkloadIdentity struct {
	// Issuer is the authorization server that trusts the platform. No other server receives
	// a JWT. "" means the first authorization server that the MCP server names. Leave
	// Issuer empty only if each JWT names its recipient as the audience, so that it is
	// useless to others.
	Issuer string
	// Assertion returns a JWT for an authorization server. It is called for every token,
	// and must not be nil.
	Assertion func(ctx context.Context, to AuthorizationServer) (string, error)
}

func (w *WorkloadIdentity) isSilent() bool { return true }

func (w *WorkloadIdentity) check() error {
	if w.Assertion == nil {
		return errors.New("oauth: WorkloadIdentity.Assertion must not be nil")
	}
	return nil
}

func (w *WorkloadIdentity) prefers(issuer string) bool { return sameIssuer(w.Issuer, issuer) }

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

// EnterpriseGrant obtains tokens based on a user's login at the identity provider of an
// enterprise (extension io.modelcontextprotocol/enterprise-managed-authorization). The
// provider issues a grant for the MCP server, an ID-JAG, which the server's authorization
// server exchanges for a token. The user is not asked again.
type EnterpriseGrant struct {
	// Provider is the identity provider of the enterprise.
	Provider IdentityProvider
	// Subject returns a token from the user's login at the provider. It is called for
	// every token, and must not be nil.
	Subject func(ctx context.Context) (SubjectToken, error)
	// Client is the client at the MCP server's authorization server.
	Client Client
}

// An IdentityProvider is configured by an administrator, so its addresses may be in a
// private network.
type IdentityProvider struct {
	// Issuer is used to find the metadata if there is no TokenEndpoint.
	Issuer string
	// TokenEndpoint is the URL for the token exchange. "" means that it is looked up in the
	// metadata of Issuer.
	TokenEndpoint string
	// Client is the client at the provider. Its Issuer is ignored.
	Client Client
}

// A SubjectToken identifies the user.
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

func (e *EnterpriseGrant) prefers(issuer string) bool { return sameIssuer(e.Client.Issuer, issuer) }

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

// exchange gets an ID-JAG from the provider (RFC 8693).
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

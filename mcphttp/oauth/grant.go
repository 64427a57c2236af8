// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
)

// A Grant is a way to get tokens: [*AuthorizationCode], [*ClientCredentials],
// [*Enterprise] or [*WorkloadIdentity]. A grant must not be changed once a transport
// has it; several may share one.
type Grant interface {
	// obtain gets a token at the site.
	obtain(ctx context.Context, g *getting) (*token, error)
	// client is who asks for tokens at the site, without registering anew.
	client(ctx context.Context, g *getting) (*Client, error)
	// prefers reports whether something is arranged with an issuer.
	prefers(issuer string) bool
	// silent reports whether nobody is bothered.
	silent() bool
	// check says why the grant must not be used as it is configured.
	check() error
}

// ClientCredentials get tokens for the program itself, without a user (extension
// io.modelcontextprotocol/oauth-client-credentials).
type ClientCredentials struct {
	// Client is who the program is. It has a secret or a key, and therefore an issuer.
	Client Client
}

func (c *ClientCredentials) silent() bool { return true }

func (c *ClientCredentials) check() error { return c.Client.check() }

func (c *ClientCredentials) prefers(issuer string) bool { return c.Client.Issuer == issuer }

func (c *ClientCredentials) client(_ context.Context, g *getting) (*Client, error) {
	return &c.Client, g.t.only(c.Client.Issuer, g.site.as.Issuer)
}

func (c *ClientCredentials) obtain(ctx context.Context, g *getting) (*token, error) {
	client, err := c.client(ctx, g)
	if err != nil {
		return nil, err
	}
	return g.token(ctx, client, url.Values{"grant_type": {grantClient}})
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

func (w *WorkloadIdentity) silent() bool { return true }

func (w *WorkloadIdentity) check() error {
	if w.Assertion == nil {
		return errors.New("oauth: WorkloadIdentity.Assertion must not be nil")
	}
	return nil
}

func (w *WorkloadIdentity) prefers(issuer string) bool { return w.Issuer == issuer }

func (w *WorkloadIdentity) client(_ context.Context, g *getting) (*Client, error) {
	return &Client{}, g.t.only(w.Issuer, g.site.as.Issuer)
}

func (w *WorkloadIdentity) obtain(ctx context.Context, g *getting) (*token, error) {
	client, err := w.client(ctx, g)
	if err != nil {
		return nil, err
	}
	assertion, err := w.Assertion(ctx, AuthorizationServer{g.site.as.Issuer, g.site.as.TokenEndpoint})
	if err != nil {
		return nil, fmt.Errorf("oauth: assertion: %w", err)
	}
	return g.token(ctx, client, url.Values{"grant_type": {grantBearer}, "assertion": {assertion}})
}

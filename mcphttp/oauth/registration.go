// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/network"
)

// A Registration describes the program for dynamic registration with an authorization
// server (RFC 7591).
//
// Deprecated: the specification has deprecated dynamic client registration. Use a client ID metadata
// document, or a client that is registered by hand. It works while authorization servers offer it.
type Registration struct {
	// Name is shown to users. "" means "MCP client".
	Name string
	// URI and LogoURI are the URLs of the program's page and logo. "" means none.
	URI, LogoURI string
	// ApplicationType is native or web. "" means native if the redirect URI is on the
	// user's machine or has a private scheme, web otherwise.
	ApplicationType string
	// Token is an initial access token, for authorization servers that require one. It
	// is sent only to TokenIssuer.
	Token, TokenIssuer string
}

// A registrationRequest is the client metadata of a registration.
type registrationRequest struct {
	Name            string   `json:"client_name"`
	URI             string   `json:"client_uri,omitzero"`
	LogoURI         string   `json:"logo_uri,omitzero"`
	RedirectURIs    []string `json:"redirect_uris"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	AuthMethod      string   `json:"token_endpoint_auth_method"`
	ApplicationType string   `json:"application_type"`
	DPoP            bool     `json:"dpop_bound_access_tokens,omitzero"`
}

// A registration is the response to a registrationRequest. It is also stored.
type registration struct {
	ID            string   `json:"client_id"`
	Secret        string   `json:"client_secret,omitzero"`
	SecretExpires float64  `json:"client_secret_expires_at,omitzero"`
	AuthMethod    string   `json:"token_endpoint_auth_method,omitzero"`
	RedirectURIs  []string `json:"redirect_uris,omitzero"`

	Error       string `json:"error,omitzero"`
	Description string `json:"error_description,omitzero"`

	// Doubtful is used only in the store. If it is set, the next login does not use the
	// registration.
	Doubtful bool `json:"com.github.go-psi/doubtful,omitzero"`
}

func (r *registration) client(issuer string) *Client {
	c := &Client{Issuer: issuer, ID: r.ID, Secret: r.Secret, dynamic: true}
	switch r.AuthMethod {
	case methodBasic, methodPost, methodNone:
		c.Method = r.AuthMethod
	}
	return c
}

// errUnregistered means that the client must register first.
var errUnregistered = fmt.Errorf("%w at this authorization server", ErrNoClient)

// registered returns the registration in the store, or nil if there is none or it has
// expired.
func (g *tokenRequest) registered(ctx context.Context) *registration {
	r, err := load[registration](ctx, g.t.opts.Store, StoreKey{Issuer: g.site.as.Issuer})
	if err != nil {
		g.t.opts.Logger.WarnContext(ctx, "oauth: the stored registration cannot be read", "error", err)
	}
	if r.ID == "" || r.SecretExpires > 0 && r.SecretExpires < float64(time.Now().Unix()) {
		return nil
	}
	return &r
}

// registeredURI returns the redirect URI of the stored registration, or "".
func (g *tokenRequest) registeredURI(ctx context.Context) string {
	if r := g.registered(ctx); r != nil && len(r.RedirectURIs) > 0 {
		return r.RedirectURIs[0]
	}
	return ""
}

// forget removes the client's registration from the store if err says that the
// authorization server does not know the client.
func (g *tokenRequest) forget(ctx context.Context, client *Client, err error) {
	if errorCode(err) != codeInvalidClient {
		return
	}
	if known := g.registered(ctx); known == nil || known.ID != client.ID {
		return // another transport may have registered since
	}
	if err := g.t.opts.Store.Save(ctx, StoreKey{Issuer: g.site.as.Issuer}, nil); err != nil {
		g.t.opts.Logger.WarnContext(ctx, "oauth: the stored registration cannot be removed", "error", err)
	}
}

// doubt marks the client's registration in the store as doubtful if the user did not come
// back in time: an authorization server that does not know a client reports this only to
// the user.
func (g *tokenRequest) doubt(ctx context.Context, client *Client) {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	known := g.registered(ctx)
	if known == nil || known.ID != client.ID {
		return
	}
	known.Doubtful = true
	g.keep(ctx, known)
}

// keep stores a registration. A failure is logged, and does not affect the login.
func (g *tokenRequest) keep(ctx context.Context, r *registration) {
	if err := save(ctx, g.t.opts.Store, StoreKey{Issuer: g.site.as.Issuer}, r); err != nil {
		g.t.opts.Logger.WarnContext(ctx, "oauth: the registration is not remembered", "error", err)
	}
}

// register registers the client.
func (g *tokenRequest) register(ctx context.Context, how *Registration, redirectURI string) (*Client, error) {
	as := g.site.as
	if as.RegistrationEndpoint == "" {
		return nil, fmt.Errorf("%w: %q does not accept registrations; register a client by hand and configure it", ErrNoClient, as.Issuer)
	}
	c := &call{method: http.MethodPost, url: as.RegistrationEndpoint, reach: g.site.reach, header: http.Header{}}
	if how.Token != "" && sameIssuer(how.TokenIssuer, as.Issuer) {
		c.header["Authorization"] = []string{"Bearer " + how.Token}
	}
	asked := &registrationRequest{
		Name: how.Name, URI: how.URI, LogoURI: how.LogoURI,
		RedirectURIs: []string{redirectURI}, GrantTypes: []string{grantCode, grantRefresh}, ResponseTypes: []string{"code"},
		AuthMethod: registrationMethod(as.AuthMethods), ApplicationType: how.ApplicationType, DPoP: g.t.opts.DPoP != nil,
	}
	if asked.Name == "" {
		asked.Name = "MCP client"
	}
	if asked.ApplicationType == "" {
		asked.ApplicationType = applicationType(redirectURI)
	}
	c.json = asked
	answer, err := g.t.egress.do(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%w: registration: %w", ErrNoClient, err)
	}
	var r registration
	err = g.t.egress.decode(ctx, c, answer.body, &r, "client_id")
	switch {
	case answer.status/100 != 2, err == nil && r.Error != "":
		return nil, fmt.Errorf("%w: registration: %w", ErrNoClient, &Error{as.Issuer, answer.status, r.Error, r.Description})
	case err != nil || r.ID == "":
		return nil, fmt.Errorf("%w: the registration response of %q is not what RFC 7591 wants", ErrNoClient, as.Issuer)
	}
	r.RedirectURIs, r.Doubtful = []string{redirectURI}, false
	g.keep(ctx, &r)
	return r.client(as.Issuer), nil
}

// registrationMethod selects the client's authentication method. It prefers none, because a
// program that is distributed to users cannot keep a secret.
func registrationMethod(supported []string) string {
	for _, m := range []string{methodNone, methodBasic, methodPost} {
		if slices.Contains(supported, m) {
			return m
		}
	}
	return methodNone
}

func applicationType(redirectURI string) string {
	u, err := url.Parse(redirectURI)
	if err == nil && u.Scheme == "https" && !network.IsLoopback(u.Hostname()) {
		return "web"
	}
	return "native"
}

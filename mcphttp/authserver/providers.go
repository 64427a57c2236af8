// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"net/http"
	"net/url"
	"strings"
)

// A Provider is an identity provider, and this server's registration there. The functions
// of this package return Providers for well-known services; their fields can be changed
// before [New].
type Provider struct {
	// Issuer is the issuer of an OpenID provider. Its endpoints and keys are discovered, and
	// each login must come with an ID token. Empty means a provider without ID tokens, of
	// which the three URLs below are required. Grants end when the Issuer, or else the TokenURL,
	// changes.
	Issuer string
	// ClientID and ClientSecret are this server's registration at the provider. The redirect
	// URI to register is the path /callback at the origin of the MCP server.
	ClientID, ClientSecret string
	// Scopes are requested of the provider. With an Issuer, they must contain "openid".
	Scopes []string
	// AuthParams are additional parameters of the authorization request, for example those
	// by which a provider is asked for refresh tokens. Those that this server sets itself are not
	// allowed.
	AuthParams map[string]string

	// AuthURL, TokenURL and UserInfoURL are the endpoints of a provider without an Issuer.
	// With an Issuer, they replace those that were discovered; UserInfoURL is used only if it
	// is set, for providers whose ID tokens contain little more than the subject.
	AuthURL, TokenURL, UserInfoURL string
	// SubjectClaim is the member of the user info that identifies a user permanently, at a
	// provider without an Issuer. Empty means "sub".
	SubjectClaim string

	// Client sends requests to the provider. Nil means a client with a timeout of 10
	// seconds.
	Client *http.Client
}

// OIDC returns an OpenID provider, such as Keycloak, Okta, Auth0 or Cognito.
func OIDC(issuer, clientID, clientSecret string) *Provider {
	return &Provider{Issuer: issuer, ClientID: clientID, ClientSecret: clientSecret, Scopes: []string{"openid", "profile", "email"}}
}

// Google returns the provider of Google accounts. Anyone has one: use Options.Identify to
// admit the users of one domain, which is the claim hd.
func Google(clientID, clientSecret string) *Provider {
	p := OIDC("https://accounts.google.com", clientID, clientSecret)
	p.AuthParams = map[string]string{"access_type": "offline", "prompt": "consent"} // only so does Google issue a refresh token each time
	return p
}

// Entra returns the provider of one tenant of Microsoft Entra ID. tenant is its ID, a UUID:
// tokens name it so. The ID tokens are those of version 2.0.
func Entra(tenant, clientID, clientSecret string) *Provider {
	p := OIDC("https://login.microsoftonline.com/"+url.PathEscape(tenant)+"/v2.0", clientID, clientSecret)
	p.Scopes = append(p.Scopes, "offline_access")
	return p
}

// Okta returns the provider of an Okta organization with the given domain, such as
// "example.okta.com". For one of its custom authorization servers, use [OIDC].
func Okta(domain, clientID, clientSecret string) *Provider {
	p := OIDC("https://"+domain, clientID, clientSecret)
	p.Scopes = append(p.Scopes, "offline_access")
	return p
}

// Auth0 returns the provider of an Auth0 tenant with the given domain, such as
// "example.eu.auth0.com". Its issuer ends with a slash.
func Auth0(domain, clientID, clientSecret string) *Provider {
	p := OIDC("https://"+strings.TrimSuffix(domain, "/")+"/", clientID, clientSecret)
	p.Scopes = append(p.Scopes, "offline_access")
	return p
}

// Cognito returns the provider of a user pool of Amazon Cognito, such as "eu-west-1_Example"
// in "eu-west-1".
func Cognito(region, pool, clientID, clientSecret string) *Provider {
	return OIDC("https://cognito-idp."+region+".amazonaws.com/"+url.PathEscape(pool), clientID, clientSecret)
}

// Keycloak returns the provider of a realm of the Keycloak at a URL.
func Keycloak(base, realm, clientID, clientSecret string) *Provider {
	return OIDC(strings.TrimSuffix(base, "/")+"/realms/"+url.PathEscape(realm), clientID, clientSecret)
}

// GitHub returns the provider of GitHub accounts, for an OAuth app or a GitHub app. GitHub
// has no ID tokens: the claims are those of the user's public profile. Anyone has an
// account: use Options.Identify to decide who may log in. To look up organizations there, with
// [TokenFromContext], add the scope "read:org".
func GitHub(clientID, clientSecret string) *Provider {
	return &Provider{ //nolint:gosec // no credentials are in it
		ClientID: clientID, ClientSecret: clientSecret, SubjectClaim: "id",
		AuthURL: "https://github.com/login/oauth/authorize", TokenURL: "https://github.com/login/oauth/access_token", UserInfoURL: "https://api.github.com/user",
	}
}

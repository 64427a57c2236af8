// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// metadataURL is the client_id that the suite expects.
const metadataURL = "https://conformance-test.local/client-metadata.json"

// given is the context that the suite passes to a client in authorization scenarios.
type given struct {
	Issuer       string `json:"issuer"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`

	PrivateKey string `json:"private_key_pem"`
	Algorithm  string `json:"signing_algorithm"`

	ProviderClientID string `json:"idp_client_id"`
	ProviderIDToken  string `json:"idp_id_token"`
	ProviderIssuer   string `json:"idp_issuer"`
	ProviderEndpoint string `json:"idp_token_endpoint"`

	WorkloadJWT string `json:"valid_jwt"`
}

// authorized returns the transport of a client whose server may require authorization. The
// grant follows from the context that the suite passes.
func authorized(server string) (*oauth.Transport, error) {
	var g given
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &g); err != nil {
			return nil, fmt.Errorf("context: %w", err)
		}
	}
	if g.Issuer == "" && (g.ClientSecret != "" || g.PrivateKey != "") {
		var err error
		if g.Issuer, err = issuerOf(server); err != nil {
			return nil, fmt.Errorf("whose credentials these are: %w", err)
		}
	}
	grant, err := g.grant(os.Getenv("MCP_CONFORMANCE_SCENARIO"))
	if err != nil {
		return nil, err
	}
	return oauth.NewTransport(server, &oauth.Options{Grant: grant}), nil
}

// issuerOf returns the authorization server named by a server. The suite passes some
// credentials without their issuer, which a user would know. Trusting the server is only
// acceptable because the suite runs it.
func issuerOf(server string) (string, error) {
	at, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	at.Path = "/.well-known/oauth-protected-resource" + at.Path
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil) //nolint:gosec // the suite says where
	if err != nil {
		return "", err
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var metadata struct {
		Servers []string `json:"authorization_servers"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&metadata); err != nil {
		return "", fmt.Errorf("%s: %w", at, err)
	}
	if len(metadata.Servers) == 0 {
		return "", fmt.Errorf("%s names no authorization server", at)
	}
	return metadata.Servers[0], nil
}

func (g *given) grant(scenario string) (oauth.Grant, error) {
	client := oauth.Client{Issuer: g.Issuer, ID: g.ClientID, Secret: g.ClientSecret}
	switch scenario {
	case "auth/client-credentials-basic":
		return &oauth.ClientCredentials{Client: client}, nil
	case "auth/client-credentials-jwt":
		key, err := parseKey(g.PrivateKey)
		client.Key = &oauth.Key{Signer: key, Algorithm: g.Algorithm}
		return &oauth.ClientCredentials{Client: client}, err
	case "auth/enterprise-managed-authorization":
		return &oauth.EnterpriseGrant{
			Provider: oauth.IdentityProvider{Issuer: g.ProviderIssuer, TokenEndpoint: g.ProviderEndpoint, Client: oauth.Client{ID: g.ProviderClientID}},
			Subject: func(context.Context) (oauth.SubjectToken, error) {
				return oauth.SubjectToken{Token: g.ProviderIDToken}, nil
			},
			Client: client,
		}, nil
	case "auth/wif-jwt-bearer":
		return &oauth.WorkloadIdentity{
			Assertion: func(context.Context, oauth.AuthorizationServer) (string, error) { return g.WorkloadJWT, nil },
		}, nil
	}
	code := &oauth.AuthorizationCode{
		Redirector:   oauth.NewRedirector("http://localhost:3333/callback", consent),
		MetadataURL:  metadataURL,
		Registration: oauth.Registration{Name: "psi-conformance"},
	}
	if g.ClientID != "" {
		code.Clients = []oauth.Client{client}
	}
	return code, nil
}

func parseKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("private_key_pem is no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("private_key_pem is a %T, which does not sign", key)
	}
	return signer, nil
}

// consent is a user who consents immediately: it visits the authorization server and
// returns the query of the redirect.
func consent(ctx context.Context, authorizationURL string) (url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, authorizationURL, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return nil, fmt.Errorf("the authorization server answered %s: %s", res.Status, body)
	}
	return back.Query(), nil
}

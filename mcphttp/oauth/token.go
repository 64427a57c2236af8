// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/redact"
)

// Error codes with a special meaning to the client.
const (
	codeInvalidClient = "invalid_client"
	codeUseNonce      = "use_dpop_nonce"
)

// A tokenRequest is the state of obtaining one token.
type tokenRequest struct {
	t      *Transport
	site   *site
	scopes []string
	proof  *prover // nil if the token is not bound to a key
}

// A tokenReply is the response of a token endpoint (RFC 6749, section 5).
type tokenReply struct {
	Access     string         `json:"access_token"`
	Type       string         `json:"token_type"`
	Refresh    string         `json:"refresh_token"`
	Expires    jsontext.Value `json:"expires_in"`
	Scope      *string        `json:"scope"`
	IssuedType string         `json:"issued_token_type"`

	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// expiry returns when a token that is valid for the given number of seconds expires, minus
// the time that a request may take. It returns zero if the number is missing or not
// positive. Some servers send the number as a string.
func expiry(now time.Time, seconds jsontext.Value) time.Time {
	n, err := strconv.ParseFloat(strings.Trim(string(seconds), `"`), 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return time.Time{}
	}
	const tenYears = 10 * 365 * 24 * 3600
	life := time.Duration(min(n, tenYears) * float64(time.Second))
	return now.Add(life - min(life/10, 10*time.Second))
}

// An endpoint is a token endpoint.
type endpoint struct {
	url, issuer string
	methods     []string // supported methods of client authentication
	algorithms  []string // supported algorithms of client assertions
	configured  bool     // by the user, not discovered
}

func (g *tokenRequest) endpoint() *endpoint {
	as := g.site.as
	return &endpoint{url: as.TokenEndpoint, issuer: as.Issuer, methods: as.AuthMethods, algorithms: as.AuthAlgorithms}
}

// postToken sends a request to a token endpoint. If the endpoint requires a nonce in the
// proof, postToken retries with the nonce. An error response is returned as an *Error.
func (g *tokenRequest) postToken(ctx context.Context, to *endpoint, client *Client, proof *prover, form url.Values) (*tokenReply, error) {
	for try := 0; ; try++ {
		c := &call{method: http.MethodPost, url: to.url, header: http.Header{}, reach: g.site.reach, anywhere: to.configured}
		c.form = maps.Clone(form)
		if err := client.authenticate(c, to); err != nil {
			return nil, err
		}
		if proof != nil {
			if err := g.t.prove(c, proof); err != nil {
				return nil, err
			}
		}
		r, err := g.t.egress.do(ctx, c)
		if err != nil {
			return nil, err
		}
		answer, err := g.readTokenReply(ctx, c, r, to.issuer)
		if u, parseErr := url.Parse(to.url); parseErr == nil {
			g.t.nonces.keep(u, r.header)
		}
		if proof != nil && errorCode(err) == codeUseNonce && r.header.Get(headerNonce) != "" && try < maxNonces {
			continue
		}
		return answer, err
	}
}

func (g *tokenRequest) readTokenReply(ctx context.Context, c *call, r *reply, issuer string) (*tokenReply, error) {
	var answer tokenReply
	err := g.t.egress.decode(ctx, c, r.body, &answer, "access_token")
	switch {
	case r.status/100 != 2, err == nil && answer.Error != "":
		return nil, &Error{Issuer: issuer, Status: r.status, Code: answer.Error, Description: answer.Description}
	case err != nil:
		return nil, fmt.Errorf("%w: the token response of %q is not what RFC 6749 wants", errNoToken, issuer) // without quoting secrets
	case !isHeaderValue(answer.Access):
		return nil, fmt.Errorf("%w: the token response of %q has no usable access_token", errNoToken, issuer)
	}
	return &answer, nil
}

// errNoToken means that a response that reports success has no token that can be used.
var errNoToken = errors.New("oauth: no usable token")

// isHeaderValue reports whether a token can be sent in a header.
func isHeaderValue(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return s != "" && len(s) <= 64<<10
}

// setResource sets the parameter that names the server that the token is for (RFC 8707).
func (g *tokenRequest) setResource(params url.Values) {
	if !g.t.opts.InsecureNoResource {
		params.Set("resource", g.site.resource)
	}
}

// token requests an access token for the server. It adds the parameters common to all
// grants to form.
func (g *tokenRequest) token(ctx context.Context, client *Client, form url.Values) (*token, error) {
	as := g.site.as
	g.setResource(form)
	if len(g.scopes) > 0 && form.Get("grant_type") != grantCode && form.Get("grant_type") != grantRefresh {
		form.Set("scope", strings.Join(g.scopes, " "))
	}
	now := time.Now()
	answer, err := g.postToken(ctx, g.endpoint(), client, g.proof, form)
	if err != nil {
		return nil, err
	}
	tok := &token{
		Access: answer.Access, Refresh: answer.Refresh, Expiry: expiry(now, answer.Expires),
		Issuer: as.Issuer, Resource: g.site.resource, Client: client.ID, Wanted: g.scopes, by: client,
	}
	switch {
	case answer.Scope != nil:
		tok.Scopes = splitScope(*answer.Scope)
	case form.Get("grant_type") != grantRefresh:
		tok.Scopes = g.scopes
	}
	switch kind := strings.ToLower(answer.Type); {
	case g.proof != nil && kind == schemeDPoP:
		tok.DPoP = true
		tok.Key, tok.Thumb = g.proof.saved, g.proof.thumb
	case g.proof != nil:
		return nil, fmt.Errorf("%w: %q gave a token of type %.50q, want DPoP", errNoToken, as.Issuer, answer.Type)
	case kind != schemeBearer && kind != "":
		return nil, fmt.Errorf("%w: %q gave a token of type %.50q, want Bearer", errNoToken, as.Issuer, answer.Type)
	}
	return tok, nil
}

// Grant types (RFC 6749, 7523, 8693).
const (
	grantCode              = "authorization_code"
	grantRefresh           = "refresh_token"
	grantClientCredentials = "client_credentials"
	grantJWTBearer         = "urn:ietf:params:oauth:grant-type:jwt-bearer" //nolint:gosec // a name
	grantExchange          = "urn:ietf:params:oauth:grant-type:token-exchange"
)

// bind sets the key to which the token will be bound, if any.
func (g *tokenRequest) bind(used *credential, n *renewalReason) error {
	algorithms := g.site.as.DPoPAlgorithms
	switch {
	case used != nil && used.proof != nil:
		g.proof = used.proof
	case g.t.opts.DPoP != nil || n.dpop || g.site.dpop:
		var err error
		if g.proof, err = newProver(g.t.opts.DPoP, algorithms); err != nil {
			return err
		}
	default:
		return nil
	}
	if len(algorithms) > 0 && !slices.Contains(algorithms, g.proof.algorithm) {
		return fmt.Errorf("oauth: %q takes DPoP proofs of %q, not of %s", g.site.as.Issuer, algorithms, g.proof.algorithm)
	}
	return nil
}

// checkIssuer returns an error if credentials are not for the given issuer. If no issuer is
// configured, which is allowed for clients without a secret, they are for the first issuer
// that the server named.
func (t *Transport) checkIssuer(configured, issuer string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if configured == "" {
		t.bound = cmp.Or(t.bound, issuer)
		configured = t.bound
	}
	if !sameIssuer(configured, issuer) {
		return fmt.Errorf("%w: the server names %.200q, and the credentials are for %q", ErrIssuer, issuer, redact.URL(configured))
	}
	return nil
}

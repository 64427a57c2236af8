// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/mcp"
)

const (
	maxIntrospection = 256 << 10 // bytes of an answer
	maxPending       = 1024      // tokens that wait to be asked about, besides those that were good before
	maxProven        = 16 << 10  // tokens of which it is remembered that they were good
	provenAge        = time.Hour // for which that is remembered
)

// IntrospectionOptions configure an [Introspection]. Nil means the zero
// IntrospectionOptions.
type IntrospectionOptions struct {
	// ClientID and ClientSecret are this server's own credentials at the endpoint,
	// sent as HTTP basic authentication.
	ClientID, ClientSecret string
	// Authenticate adds other credentials to a request, in place of these. Nil means
	// none; for mutual TLS, see Client.
	Authenticate func(r *http.Request) error
	// Issuer is who has issued the tokens. An answer that names another is refused.
	// Empty means whom the answer names or, if it names none, the endpoint's origin.
	Issuer string
	// RequireIssuer refuses an answer that names no issuer, which RFC 7662 allows. It is
	// for endpoints that know the tokens of several issuers: otherwise a token of which
	// they do not say whose it is counts as one of Issuer's.
	RequireIssuer bool
	// Audiences are further audiences whose tokens are good here.
	Audiences []string
	// InsecureAnyAudience takes tokens whatever their audience, also without one. It
	// is for authorization servers that do not tell and issue tokens for this server
	// only: otherwise anyone who gets a token of a user's can pass for that user.
	InsecureAnyAudience bool
	// Leeway, Subject and Check are as in [JWTOptions].
	Leeway  time.Duration
	Subject func(claims map[string]any) string
	Check   func(claims map[string]any) error

	// CacheSize is how many answers are remembered, by the tokens' hashes; negative
	// none. 0 means 4096 that were good and as many that were not. CacheAge is how
	// long a good one is, but no longer than the token is valid: it is by how much a
	// revocation can come late. 0 means one minute. A bad one is remembered for
	// RefusedAge; 0 means 10 seconds.
	CacheSize            int
	CacheAge, RefusedAge time.Duration
	// MaxConcurrent is how many questions are asked at once. 0 means 32. Up to 1024 others
	// wait: tokens that were good in the last hour go first, then each source in turn. If
	// there are more, the source with the most waits the longest, and is refused first.
	MaxConcurrent int
	// Source is where a request comes from, for turns. Nil means the network address of
	// the connection: its first 64 bits, if it is one of IPv6. Behind a reverse proxy
	// that is the same for all callers: return what the proxy says of the caller. Tokens
	// that are verified by VerifyToken have one source.
	Source func(r *http.Request) string
	// Client asks the endpoint. Its redirects are not followed. Nil means a client
	// with defaults. Every question is bounded to 10 seconds and 256 KiB.
	Client *http.Client
}

// An Introspection verifies access tokens by asking the authorization server (RFC
// 7662), which tokens of any form can be, and at once when they are revoked, as far as
// they are not remembered. As a [Verifier] it takes bearer tokens, as [Bearer] does.
// It is safe for concurrent use.
//
// The answer must say that the token is active, whom it is for and whom it was issued
// to; exp, nbf and iat are observed. All of it is in [mcp.Principal.Claims].
type Introspection struct {
	endpoint string
	opts     IntrospectionOptions
	rules    rules
	fetch    *fetcher
	turns    *turns
	flights  flights[*mcp.Principal]
	good     *cache[*mcp.Principal]
	bad      *cache[error]
	proven   *cache[struct{}]
}

// NewIntrospection makes an Introspection that asks an endpoint about tokens that are
// meant for an audience: usually the server's URL, as in [Options]. opts may be nil.
// It panics if an argument is wrong.
func NewIntrospection(endpoint, audience string, opts *IntrospectionOptions) *Introspection {
	u := mustEndpoint("the introspection endpoint", endpoint)
	o := opts.withDefaults()
	i := &Introspection{
		endpoint: endpoint, opts: o,
		rules: rules{
			issuer: o.Issuer, leeway: o.Leeway,
			subject: o.Subject, check: o.Check, otherIssuer: u.Scheme + "://" + u.Host,
		},
		fetch:  newFetcher(o.Client, maxIntrospection),
		turns:  newTurns(o.MaxConcurrent, maxPending),
		good:   newCache[*mcp.Principal](o.CacheSize),
		bad:    newCache[error](o.CacheSize),
		proven: newCache[struct{}](maxProven),
	}
	if !o.InsecureAnyAudience {
		i.rules.audiences = audienceList(audience, o.Audiences)
	}
	return i
}

// Verify implements [Verifier].
func (i *Introspection) Verify(r *http.Request) (*mcp.Principal, error) { return bearer{i}.Verify(r) }

func (o *IntrospectionOptions) withDefaults() IntrospectionOptions {
	var opts IntrospectionOptions
	if o != nil {
		opts = *o
	}
	setDefault(&opts.Leeway, time.Minute)
	opts.Leeway = max(0, opts.Leeway)
	setDefault(&opts.CacheSize, 4096)
	setDefault(&opts.CacheAge, time.Minute)
	setDefault(&opts.RefusedAge, 10*time.Second)
	if opts.MaxConcurrent <= 0 {
		opts.MaxConcurrent = 32
	}
	if opts.Source == nil {
		opts.Source = func(r *http.Request) string { return network.Of(r.RemoteAddr) }
	}
	return opts
}

// VerifyToken implements [TokenVerifier].
func (i *Introspection) VerifyToken(ctx context.Context, token string) (*mcp.Principal, error) {
	return i.verify(ctx, nil, token)
}

func (i *Introspection) verifyTokenOf(r *http.Request, token string) (*mcp.Principal, error) {
	return i.verify(r.Context(), r, token)
}

// verify verifies a token that came with r, which may be nil.
func (i *Introspection) verify(ctx context.Context, r *http.Request, token string) (*mcp.Principal, error) {
	if len(token) > maxToken {
		return nil, Invalid("the token is longer than %d bytes", maxToken)
	}
	key, now := digestOf(token), time.Now()
	if p, ok := i.good.get(key, now); ok {
		return p, nil
	}
	if err, ok := i.bad.get(key, now); ok {
		return nil, err
	}
	source := ""
	if r != nil {
		source = i.opts.Source(r)
	}
	return i.flights.do(ctx, key, func(ctx context.Context) (*mcp.Principal, error) { return i.look(ctx, key, source, token) })
}

// look asks when it is the token's turn, and remembers the answer.
func (i *Introspection) look(ctx context.Context, key digest, source, token string) (*mcp.Principal, error) {
	_, proven := i.proven.get(key, time.Now())
	if err := i.turns.enter(ctx, source, proven); err != nil {
		return nil, fmt.Errorf("auth: introspection: %w", err)
	}
	defer i.turns.leave()
	p, err := i.ask(ctx, token)
	now := time.Now()
	if _, refused := errors.AsType[*Error](err); refused {
		i.bad.put(key, err, now.Add(i.opts.RefusedAge))
		if proven {
			i.proven.put(key, struct{}{}, now) // which ends it
		}
	}
	if err != nil {
		return nil, err
	}
	i.proven.put(key, struct{}{}, now.Add(provenAge))
	until := now.Add(i.opts.CacheAge)
	if end := p.Expiry.Add(i.rules.leeway); !p.Expiry.IsZero() && end.Before(until) {
		until = end
	}
	i.good.put(key, p, until)
	return p, nil
}

func (i *Introspection) ask(ctx context.Context, token string) (*mcp.Principal, error) {
	r, err := i.request(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("auth: introspection: %w", err)
	}
	text, err := i.fetch.do(r)
	if err != nil {
		return nil, fmt.Errorf("auth: introspection: %w", err)
	}
	var claims map[string]any
	if err := json.Unmarshal(text, &claims); err != nil {
		return nil, fmt.Errorf("auth: introspection: the answer: %w", err)
	}
	if active, _ := claims["active"].(bool); !active {
		return nil, Invalid("the token is not, or no longer, valid")
	}
	switch issuer := claims["iss"]; {
	case i.opts.RequireIssuer && (issuer == nil || issuer == ""):
		return nil, Invalid("the issuer of the token is not known").because(errors.New("the answer has no iss, which IntrospectionOptions.RequireIssuer wants"))
	case i.rules.issuer != "" && issuer == nil:
		claims["iss"] = i.rules.issuer // it is the server that was asked
	}
	return i.rules.principal(claims, time.Now())
}

func (i *Introspection) request(ctx context.Context, token string) (*http.Request, error) {
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, i.endpoint, strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	switch {
	case i.opts.Authenticate != nil:
		return r, i.opts.Authenticate(r)
	case i.opts.ClientID != "":
		r.SetBasicAuth(url.QueryEscape(i.opts.ClientID), url.QueryEscape(i.opts.ClientSecret))
	}
	return r, nil
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
)

// JWTOptions configure a [JWT]. Nil means the zero JWTOptions.
type JWTOptions struct {
	// JWKSURL is where the issuer's keys are. Empty means that the issuer's metadata
	// says it: that of OAuth (RFC 8414) or of OpenID Connect.
	JWKSURL string
	// Keys is a JWK set (RFC 7517) to use in place of fetching one.
	Keys []byte
	// Audiences are further audiences whose tokens are good here, for issuers that
	// have names of their own for the server.
	Audiences []string
	// Algorithms are the ones whose signatures are trusted. All must be asymmetric.
	// Nil means RS, PS and ES with 256, 384 and 512 bits, and EdDSA.
	Algorithms []string
	// Leeway is how far the clocks may be apart. 0 means one minute, negative none.
	Leeway time.Duration
	// Subject makes [mcp.Principal.Subject] of the claims: it must be unique at the
	// issuer. An empty one is refused. Nil means the claim sub.
	Subject func(claims map[string]any) string
	// Check looks at what else must be right, such as the tenant. Its errors are as
	// those of a [Verifier]. Nil means nothing.
	Check func(claims map[string]any) error

	// CacheAge is how long a verified token is remembered, by its hash, so that its
	// signature is not verified with every request. It is never remembered after it has
	// expired or after the issuer's keys have changed. 0 means 5 minutes, negative not at all.
	//
	// A JWT cannot be revoked. Withdrawing its key takes effect after up to 15 minutes,
	// when keys are fetched again; a change of mind of Check takes up to CacheAge. Where
	// that is too late, see [Introspection].
	CacheAge time.Duration

	// Client fetches the keys. Its redirects to other origins are not followed. Nil
	// means a client with defaults. Every fetch is bounded to 10 seconds and 1 MiB.
	Client *http.Client
}

// asymmetric are the algorithms that a public key can verify. Those of shared secrets
// are not here, so that no public key can be mistaken for a secret.
var asymmetric = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// A JWT verifies access tokens that are signed JSON Web Tokens (RFC 7519, RFC 9068),
// with the keys that their issuer publishes. As a [Verifier] it takes bearer tokens,
// as [Bearer] does. It is safe for concurrent use.
//
// A token must be signed by a key of the issuer's with an algorithm that is allowed,
// name issuer and audience, and have a subject and an end (exp); nbf and iat are
// observed. Scopes come from the claims scope and scp. All claims are in
// [mcp.Principal.Claims].
type JWT struct {
	rules      rules
	algorithms []jose.SignatureAlgorithm
	keys       *keySet
	cache      *cache[verified]
	cacheAge   time.Duration
}

// verified is a token that was found good with keys of a generation.
type verified struct {
	principal  *mcp.Principal
	generation uint64
}

// NewJWT makes a JWT for tokens of an issuer that are meant for an audience: usually
// the server's URL, as in [Options]. The issuer is compared exactly, the audience with
// or without a slash at the end. opts may be nil. It panics if an argument is wrong.
func NewJWT(issuer, audience string, opts *JWTOptions) *JWT {
	o := opts.withDefaults()
	if issuer == "" {
		panic("auth: NewJWT wants an issuer")
	}
	return &JWT{
		rules: rules{
			issuer: issuer, audiences: audienceList(audience, o.Audiences), mustExpire: true,
			leeway: o.Leeway, subject: o.Subject, check: o.Check,
		},
		algorithms: mustAlgorithms(o.Algorithms),
		keys:       newKeySet(issuer, &o),
		cache:      cacheFor[verified](o.CacheAge),
		cacheAge:   o.CacheAge,
	}
}

// Verify implements [Verifier].
func (j *JWT) Verify(r *http.Request) (*mcp.Principal, error) { return bearer{j}.Verify(r) }

func (o *JWTOptions) withDefaults() JWTOptions {
	var opts JWTOptions
	if o != nil {
		opts = *o
	}
	setDefault(&opts.Leeway, time.Minute)
	opts.Leeway = max(0, opts.Leeway)
	setDefault(&opts.CacheAge, 5*time.Minute)
	return opts
}

func setDefault[V comparable](field *V, value V) {
	var zero V
	if *field == zero {
		*field = value
	}
}

func audienceList(audience string, more []string) []string {
	var list []string
	for _, a := range append([]string{audience}, more...) {
		if a = withoutSlash(a); a == "" {
			panic("auth: an audience is empty")
		}
		list = append(list, a)
	}
	return list
}

func mustAlgorithms(names []string) []jose.SignatureAlgorithm {
	if names == nil {
		return asymmetric
	}
	var list []jose.SignatureAlgorithm
	for _, name := range names {
		if !slices.Contains(asymmetric, jose.SignatureAlgorithm(name)) {
			panic(fmt.Sprintf("auth: the algorithm %q is none of %v", name, asymmetric))
		}
		list = append(list, jose.SignatureAlgorithm(name))
	}
	if len(list) == 0 {
		panic("auth: no algorithm is allowed")
	}
	return list
}

// VerifyToken implements [TokenVerifier].
func (j *JWT) VerifyToken(ctx context.Context, token string) (*mcp.Principal, error) {
	if len(token) > maxToken {
		return nil, Invalid("the token is longer than %d bytes", maxToken)
	}
	key, now := digestOf(token), time.Now()
	generation := j.keys.generation.Load()
	if v, ok := j.cache.get(key, now); ok && v.generation == generation {
		return v.principal, nil
	}
	claims, err := j.claims(ctx, token)
	if err != nil {
		return nil, err
	}
	p, err := j.rules.principal(claims, now)
	if err != nil {
		return nil, err
	}
	until := p.Expiry.Add(j.rules.leeway)
	if soon := now.Add(j.cacheAge); soon.Before(until) {
		until = soon
	}
	// The generation is that of before: keys may have been withdrawn meanwhile.
	j.cache.put(key, verified{p, generation}, until)
	return p, nil
}

// claims are what a token says, if its signature is good.
func (j *JWT) claims(ctx context.Context, token string) (map[string]any, error) {
	signed, err := jose.ParseSignedCompact(token, j.algorithms)
	if err != nil {
		return nil, Invalid("the token is no JWT that is signed with an allowed algorithm").because(err)
	}
	header := signed.Signatures[0].Protected
	if err := checkHeader(header, "", "JWT", "at+jwt"); err != nil {
		return nil, Invalid("the token is no access token").because(err)
	}
	payload, err := j.keys.verify(ctx, signed, header)
	if err != nil {
		return nil, err
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		return nil, Invalid("the claims of the token are no JSON object").because(err)
	}
	return claims, nil
}

// checkHeader wants one of some types, and nothing in the header that would have to be
// understood.
func checkHeader(h jose.Header, types ...string) error {
	for _, name := range []jose.HeaderKey{"crit", "b64"} {
		if _, ok := h.ExtraHeaders[name]; ok {
			return fmt.Errorf("the header has %q", name)
		}
	}
	typ := ""
	if value, ok := h.ExtraHeaders[jose.HeaderType]; ok {
		if typ, ok = value.(string); !ok {
			return errors.New("the header's typ is no text")
		}
	}
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	if !slices.ContainsFunc(types, func(t string) bool { return strings.EqualFold(t, typ) }) {
		return fmt.Errorf("the header's typ is %.40q, expected one of %q", typ, types)
	}
	return nil
}

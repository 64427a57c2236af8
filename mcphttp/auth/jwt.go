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

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp"
)

// JWTOptions configure a [JWT]. Nil means the zero JWTOptions.
type JWTOptions struct {
	// JWKSURL is the URL of the issuer's keys. Empty means that it is read from the
	// issuer's OAuth (RFC 8414) or OpenID Connect metadata.
	JWKSURL string
	// Keys is a JWK set (RFC 7517) to use instead of fetching one.
	Keys []byte
	// Audiences are additional accepted audiences, for issuers that use other names for the
	// server.
	Audiences []string
	// AudienceClaims are the claims that stand for aud in a token without aud, each with its
	// accepted values: for Amazon Cognito, for example, {"client_id": {"7example"}}. One of
	// them must match exactly. A token with an aud needs the right one. List only clients
	// whose tokens are for this server alone: a token does not say which server it is for, so
	// every other server that gets it can use it here. Nil means that a token without aud is
	// rejected.
	AudienceClaims map[string][]string
	// Algorithms are the accepted signature algorithms. All must be asymmetric. Nil means
	// RS, PS and ES with 256, 384 and 512 bits, and EdDSA.
	Algorithms []string
	// Leeway is the tolerated clock skew. 0 means one minute, negative none. It is included
	// in [mcp.Principal.Expiry].
	Leeway time.Duration
	// Identify returns the caller for the claims of a verified token, and can check further
	// claims, such as the tenant. Its errors have the same meaning as the errors of a
	// [Verifier]. If it returns nil, or is nil, the caller is the claim sub. A principal that
	// it returns must have a Subject, unique per issuer, or the token is rejected. Its Claims
	// and, if they are unset, its Issuer, Scopes and Expiry are set to those of the token,
	// which also bounds Expiry. The result is cached with the token; see [JWT].
	Identify func(ctx context.Context, claims map[string]any) (*mcp.Principal, error)

	// Client fetches the keys. It does not follow redirects to other origins. Nil means a
	// client with defaults. Each fetch is limited to 10 seconds and 1 MiB.
	Client *http.Client
}

// asymmetric are the algorithms that verify with a public key. Algorithms with shared
// secrets are excluded, so that a public key cannot be mistaken for a secret.
var asymmetric = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// A JWT verifies access tokens that are signed JSON Web Tokens (RFC 7519, RFC 9068), with
// the keys that their issuer publishes. As a [Verifier] it reads bearer tokens, as [Bearer]
// does. It is safe for concurrent use. It must be created by [NewJWT].
//
// A token must be signed by a key of the issuer with an accepted algorithm, name the
// issuer and the audience (but see JWTOptions.AudienceClaims), and have a subject and an
// expiry (exp). nbf and iat are checked. Scopes come from the claims scope and scp. All
// claims are in [mcp.Principal.Claims].
//
// A verified token is cached by its hash for up to 5 minutes, so that its signature is not
// verified with every request. It is dropped earlier if the token expires or the issuer's keys
// change. A JWT cannot be revoked. If its key is withdrawn, it is rejected within half an hour,
// once the keys have been fetched again. While the issuer is unavailable, its keys remain in
// use for up to a day. If Identify would now reject a token, that takes effect within 5
// minutes. If that is too late, use an [Introspection].
type JWT struct {
	rules      rules
	algorithms []jose.SignatureAlgorithm
	keys       *keySet
	cache      *cache[verified]
	cacheAge   time.Duration // jwtCacheAge, except in tests
}

// jwtCacheAge is how long a verified token is cached. A signature takes some tens of
// microseconds to verify, so a longer time would save nothing. Tokens of this kind cannot be
// revoked; those that can have introspection.
const jwtCacheAge = 5 * time.Minute

// defaultLeeway is the tolerated clock skew.
const defaultLeeway = time.Minute

// verified is the result of verifying a token with one generation of keys.
type verified struct {
	principal  *mcp.Principal
	generation uint64
}

// NewJWT returns a JWT for tokens of an issuer for the given audience, usually the server's
// URL as in [Metadata]. The issuer must match exactly. A trailing slash of the audience is
// ignored. opts may be nil. An error says which argument is invalid: nothing is fetched yet.
func NewJWT(issuer, audience string, opts *JWTOptions) (*JWT, error) {
	o := opts.withDefaults()
	if issuer == "" {
		return nil, errors.New("auth: NewJWT wants an issuer")
	}
	audiences, err := audienceList(audience, o.Audiences)
	if err != nil {
		return nil, err
	}
	instead, err := audienceClaims(o.AudienceClaims)
	if err != nil {
		return nil, err
	}
	algorithms, err := algorithmList(o.Algorithms)
	if err != nil {
		return nil, err
	}
	keys, err := newKeySet(issuer, &o)
	if err != nil {
		return nil, err
	}
	return &JWT{
		rules: rules{
			issuer: issuer, audiences: audiences, mustExpire: true,
			noAudience: instead, leeway: o.Leeway, identify: o.Identify,
		},
		algorithms: algorithms,
		keys:       keys,
		cache:      newCache[verified](cacheSize),
		cacheAge:   jwtCacheAge,
	}, nil
}

// Audience returns the audience that NewJWT was called with, for [Require].
func (j *JWT) Audience() string {
	j.mustBeMade()
	return j.rules.audiences[0]
}

// mustBeMade panics unless the verifier was created by NewJWT.
func (j *JWT) mustBeMade() {
	made.Check(j != nil && j.keys != nil, "auth: a JWT", "NewJWT")
}

// Verify implements [Verifier].
func (j *JWT) Verify(r *http.Request) (*mcp.Principal, error) {
	j.mustBeMade()
	return bearer{j}.Verify(r)
}

func (o *JWTOptions) withDefaults() JWTOptions {
	var opts JWTOptions
	if o != nil {
		opts = *o
	}
	setDefault(&opts.Leeway, defaultLeeway)
	opts.Leeway = max(0, opts.Leeway)
	return opts
}

func setDefault[V comparable](field *V, value V) {
	var zero V
	if *field == zero {
		*field = value
	}
}

// audienceList returns the accepted audiences, the server's own first.
func audienceList(audience string, more []string) ([]string, error) {
	var list []string
	for _, a := range append([]string{audience}, more...) {
		if a = withoutSlash(a); a == "" {
			return nil, errors.New("auth: an audience is empty")
		}
		list = append(list, a)
	}
	return list, nil
}

// audienceClaims copies JWTOptions.AudienceClaims.
func audienceClaims(accepted map[string][]string) (map[string][]string, error) {
	list := map[string][]string{}
	for name, values := range accepted {
		if name == "" || name == "aud" || len(values) == 0 || slices.Contains(values, "") {
			return nil, fmt.Errorf("auth: JWTOptions.AudienceClaims: %q: %q; want a claim other than aud, and values that are not empty", name, values)
		}
		list[name] = slices.Clone(values)
	}
	return list, nil
}

func algorithmList(names []string) ([]jose.SignatureAlgorithm, error) {
	if names == nil {
		return asymmetric, nil
	}
	var list []jose.SignatureAlgorithm
	for _, name := range names {
		if !slices.Contains(asymmetric, jose.SignatureAlgorithm(name)) {
			return nil, fmt.Errorf("auth: the algorithm %q is not one of %v", name, asymmetric)
		}
		list = append(list, jose.SignatureAlgorithm(name))
	}
	if len(list) == 0 {
		return nil, errors.New("auth: no algorithm is allowed")
	}
	return list, nil
}

// VerifyToken implements [TokenVerifier].
func (j *JWT) VerifyToken(ctx context.Context, token string) (*mcp.Principal, error) {
	j.mustBeMade()
	if len(token) > maxToken {
		return nil, NewInvalidTokenError("the token is longer than %d bytes", maxToken)
	}
	key, now := digestOf(token), time.Now()
	generation := j.keys.generation.Load()
	if v, ok := j.cache.get(key, now); ok && v.generation == generation && !j.keys.isOld() {
		return v.principal, nil
	}
	claims, err := j.claims(ctx, token)
	if err != nil {
		return nil, err
	}
	p, err := j.rules.principal(ctx, claims, now)
	if err != nil {
		return nil, err
	}
	until := p.Expiry
	if soon := now.Add(j.cacheAge); soon.Before(until) {
		until = soon
	}
	// Use the generation read before verifying: keys may have been withdrawn in the
	// meantime.
	j.cache.put(key, verified{p, generation}, until)
	return p, nil
}

// claims verifies the signature of a token and returns its claims.
func (j *JWT) claims(ctx context.Context, token string) (map[string]any, error) {
	signed, err := jose.ParseSignedCompact(token, j.algorithms)
	if err != nil {
		return nil, NewInvalidTokenError("the token is not a JWT signed with an allowed algorithm").because(err)
	}
	header := signed.Signatures[0].Protected
	if err := checkHeader(header, "", "JWT", "at+jwt"); err != nil {
		return nil, NewInvalidTokenError("the token is not an access token").because(err)
	}
	payload, err := j.keys.verify(ctx, signed, header)
	if err != nil {
		return nil, err
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		return nil, NewInvalidTokenError("the claims of the token are not a JSON object").because(err)
	}
	return claims, nil
}

// checkHeader requires one of the given types, and rejects headers with extensions that
// must be understood.
func checkHeader(h jose.Header, types ...string) error {
	for _, name := range []jose.HeaderKey{"crit", "b64"} {
		if _, ok := h.ExtraHeaders[name]; ok {
			return fmt.Errorf("the header has %q", name)
		}
	}
	typ := ""
	if value, ok := h.ExtraHeaders[jose.HeaderType]; ok {
		if typ, ok = value.(string); !ok {
			return errors.New("the header's typ is not a string")
		}
	}
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	if !slices.ContainsFunc(types, func(t string) bool { return strings.EqualFold(t, typ) }) {
		return fmt.Errorf("the header's typ is %.40q, expected one of %q", typ, types)
	}
	return nil
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp/mcptest"
)

// Claims maps the names of a token's claims to their values. A [time.Time] is encoded in
// seconds, as required for exp, nbf and iat. A nil value omits the claim.
type Claims map[string]any

// An Issuer issues access tokens and answers introspection requests about them. The zero
// Issuer is ready to use once its URL and Audience are set. It is safe for concurrent use;
// the fields must not be changed after the first use.
type Issuer struct {
	// URL is the claim iss of the tokens. The Issuer, an HTTP handler, must be served at
	// this URL, unless the server under test gets the keys from [Issuer.JWKS].
	URL string
	// Audience is the claim aud of the tokens: the URL of the server under test.
	Audience string
	// Algorithms are the signature algorithms, each with its own key: RS, PS and ES with
	// 256, 384 and 512 bits, and EdDSA. Tokens are signed with the first one by default.
	// Nil means ES256.
	Algorithms []string

	makeKeys sync.Once
	keys     []jose.JSONWebKey // one per algorithm, which is also the key's ID

	mu     sync.Mutex
	issued map[string]Claims // by token; revoked ones are deleted
}

// NewIssuer returns an Issuer of tokens for an audience, the URL of the server under test.
// The Issuer is served on a loopback port until the test ends. If the server needs the
// issuer before its own URL is known, call NewIssuer(tb, ""), start the server, and set the
// Audience before issuing the first token.
func NewIssuer(tb testing.TB, audience string, algorithms ...string) *Issuer {
	tb.Helper()
	i := &Issuer{Audience: audience, Algorithms: algorithms}
	mcptest.ServeFunc(tb, func(url string) http.Handler {
		i.URL = url
		return i
	})
	return i
}

// Claims returns the claims of a valid token with changes applied to them. The defaults are
// iss, aud, iat, exp in ten minutes, a unique jti, and "user" for sub.
func (i *Issuer) Claims(changes Claims) Claims {
	now := time.Now()
	c := Claims{"iss": i.URL, "aud": i.Audience, "sub": "user", "iat": now, "exp": now.Add(10 * time.Minute), "jti": rand.Text()}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	for name, value := range c {
		if t, ok := value.(time.Time); ok {
			c[name] = t.Unix()
		}
	}
	return c
}

// Token returns a JWT (RFC 9068) with changes applied to the claims of a valid token. To
// get an expired token, for example, pass Claims{"exp": time.Now().Add(-time.Hour)}. The
// claim scope contains the scopes, separated by spaces.
func (i *Issuer) Token(changes Claims) string { return i.TokenWith("", changes) }

// TokenWith is like Token, but signs with the given one of the Algorithms. Empty means the
// first.
func (i *Issuer) TokenWith(algorithm string, changes Claims) string {
	c := i.Claims(changes)
	return i.remember(sign(i.key(algorithm), "at+jwt", nil, c), c)
}

// OpaqueToken returns a random token that can be verified only by introspection.
func (i *Issuer) OpaqueToken(changes Claims) string {
	return i.remember(rand.Text(), i.Claims(changes))
}

// Bearer returns a request header with a bearer token as returned by Token.
func (i *Issuer) Bearer(changes Claims) http.Header {
	return http.Header{"Authorization": {"Bearer " + i.Token(changes)}}
}

// InvalidTokens returns tokens that a server must reject, keyed by what is wrong with them.
// In all other respects they are like Token(changes): a server that accepts Token(changes)
// and rejects all of these makes all required checks.
func (i *Issuer) InvalidTokens(changes Claims) map[string]string {
	with := func(name string, value any) string {
		c := maps.Clone(changes)
		if c == nil {
			c = Claims{}
		}
		c[name] = value
		return i.Token(c)
	}
	c, key := i.Claims(changes), i.key("")
	stranger := newKey(key.KeyID)
	signed := strings.Split(sign(key, "at+jwt", nil, c), ".")
	admin := maps.Clone(c)
	admin["sub"] = "admin"
	return map[string]string{
		"expired":              with("exp", time.Now().Add(-time.Hour)),
		"not valid yet":        with("nbf", time.Now().Add(time.Hour)),
		"of another issuer":    with("iss", "https://issuer.example.net"),
		"for another server":   with("aud", "https://server.example.net/mcp"),
		"without a subject":    with("sub", nil),
		"signed by a stranger": sign(stranger, "at+jwt", nil, c),
		"not signed":           encode(must(json.Marshal(Claims{"alg": "none", "typ": "at+jwt"}))) + "." + signed[1] + ".",
		"changed":              signed[0] + "." + encode(must(json.Marshal(admin))) + "." + signed[2],
		"of another type":      sign(key, "logout+jwt", nil, c),
	}
}

// Revoke makes introspection report the token as inactive from now on. A JWT that is
// verified by its signature stays valid until it expires.
func (i *Issuer) Revoke(token string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.issued, token)
}

// JWKS returns the public keys as a JWK set (RFC 7517), for auth.JWTOptions.Keys.
func (i *Issuer) JWKS() []byte {
	i.key("")
	var set jose.JSONWebKeySet
	for _, k := range i.keys {
		set.Keys = append(set.Keys, k.Public())
	}
	return must(json.Marshal(set))
}

func (i *Issuer) remember(token string, c Claims) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.issued == nil {
		i.issued = map[string]Claims{}
	}
	i.issued[token] = c
	return token
}

// key returns the key for an algorithm, or the first one for "".
func (i *Issuer) key(algorithm string) jose.JSONWebKey {
	i.makeKeys.Do(func() {
		algorithms := i.Algorithms
		if len(algorithms) == 0 {
			algorithms = []string{string(jose.ES256)}
		}
		for _, a := range algorithms {
			i.keys = append(i.keys, newKey(a))
		}
	})
	for _, k := range i.keys {
		if algorithm == "" || k.Algorithm == algorithm {
			return k
		}
	}
	panic(fmt.Sprintf("authtest: the issuer has no key for %q: add it to Issuer.Algorithms", algorithm))
}

// newKey returns a new private key for an algorithm.
func newKey(algorithm string) jose.JSONWebKey {
	var key crypto.Signer
	var err error
	switch jose.SignatureAlgorithm(algorithm) {
	case jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case jose.ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.ES384:
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.ES512:
		key, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case jose.EdDSA:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		err = fmt.Errorf("the algorithm %q is not supported: use RS, PS or ES with 256, 384 or 512 bits, or EdDSA", algorithm)
	}
	return jose.JSONWebKey{Key: must(key, err), KeyID: algorithm, Algorithm: algorithm, Use: "sig"}
}

// sign returns a JWT with additional members in its header.
func sign(key jose.JSONWebKey, typ string, header map[jose.HeaderKey]any, c Claims) string {
	opts := (&jose.SignerOptions{ExtraHeaders: header}).WithType(jose.ContentType(typ))
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, opts))
	return must(must(signer.Sign(must(json.Marshal(c)))).CompactSerialize())
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// must panics if claims cannot be encoded or a key cannot be generated.
func must[T any](v T, err error) T {
	if err != nil {
		panic("authtest: " + err.Error())
	}
	return v
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"
	"github.com/go-json-experiment/json"
)

// A Client is an OAuth client that is registered with an authorization server.
type Client struct {
	// Issuer is the authorization server. The client is not used with any other. Issuer
	// must be set if there is a Secret or a Key. Otherwise, "" means the first
	// authorization server that the MCP server names.
	Issuer string
	// ID is the client_id.
	ID string
	// Secret is the client secret. "" means none.
	Secret string
	// Key signs client assertions (private_key_jwt), which replace the secret. Nil means
	// none.
	Key *Key
	// Method is the authentication method: none, client_secret_basic, client_secret_post
	// or private_key_jwt. "" means the first of private_key_jwt, client_secret_basic,
	// client_secret_post and none that the client can use and the server's metadata lists.
	Method string
	// Audience is the audience of assertions. "" means the issuer or, if it is unknown, the
	// URL of the token endpoint. Some servers expect the latter.
	Audience string

	dynamic bool // registered by this package
}

// check returns an error if a client has a secret or a key, but no issuer. Secrets must not
// be sent to an authorization server only because an MCP server names it: a hostile server
// could collect them.
func (c *Client) check() error {
	if c.Issuer == "" && (c.Secret != "" || c.Key != nil) {
		return fmt.Errorf("%w: the client %.200q has a secret or a key, so its Client.Issuer must be set to the one authorization server that it is for", ErrIssuer, c.ID)
	}
	return nil
}

// Methods of client authentication.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt"
)

// method selects the authentication method for an endpoint that lists the supported
// methods. An endpoint that lists none supports client_secret_basic (RFC 8414, section 2).
func (c *Client) method(supported []string) (string, error) {
	listed := func(m string) bool { return len(supported) == 0 || slices.Contains(supported, m) }
	switch {
	case c.Method != "":
		return c.Method, nil
	case c.Key != nil && listed(methodKey):
		return methodKey, nil
	case c.Key == nil && c.Secret == "":
		return methodNone, nil
	case c.Secret != "" && listed(methodBasic):
		return methodBasic, nil
	case c.Secret != "" && listed(methodPost):
		return methodPost, nil
	case c.Key == nil && listed(methodNone):
		return methodNone, nil
	}
	return "", fmt.Errorf("%w: it can authenticate by none of %.300q", ErrNoClient, supported)
}

// authenticate adds client authentication to a request. A nil Client adds nothing.
func (c *Client) authenticate(to *call, at *endpoint) error {
	if c == nil {
		return nil
	}
	method, err := c.method(at.methods)
	if err != nil {
		return err
	}
	switch method {
	case methodNone:
		if c.ID != "" {
			to.form.Set("client_id", c.ID)
		}
	case methodBasic:
		pair := url.QueryEscape(c.ID) + ":" + url.QueryEscape(c.Secret)
		to.header["Authorization"] = []string{"Basic " + base64.StdEncoding.EncodeToString([]byte(pair))}
	case methodPost:
		to.form.Set("client_id", c.ID)
		to.form.Set("client_secret", c.Secret)
	case methodKey:
		assertion, err := c.assertion(at)
		if err != nil {
			return err
		}
		to.form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		to.form.Set("client_assertion", assertion)
	default:
		return fmt.Errorf("%w: unknown method of authentication %q", ErrNoClient, method)
	}
	return nil
}

// assertionTime is the lifetime of an assertion.
const assertionTime = 2 * time.Minute

// assertion returns a signed client assertion (RFC 7523).
func (c *Client) assertion(at *endpoint) (string, error) {
	if c.Key == nil {
		return "", fmt.Errorf("%w: private_key_jwt without a key", ErrNoClient)
	}
	algorithm, err := c.Key.algorithm(at.algorithms)
	if err != nil {
		return "", err
	}
	audience := cmp.Or(c.Audience, at.issuer, at.url)
	now := time.Now()
	return sign(c.Key.Signer, algorithm, c.Key.ID, (&jose.SignerOptions{}).WithType("JWT"), map[string]any{
		"iss": c.ID, "sub": c.ID, "aud": audience, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionTime).Unix(),
	})
}

// A Key is a private key for signatures.
type Key struct {
	// Signer is the private key: RSA, ECDSA or Ed25519.
	Signer crypto.Signer
	// Algorithm is the signature algorithm (RFC 7518), such as PS256. "" means ES256, ES384
	// or ES512 by the curve, EdDSA, or for RSA one that the authorization server accepts,
	// by default RS256.
	Algorithm string
	// ID is sent as the key's "kid". "" means none.
	ID string
}

var errNoKey = errors.New("oauth: the key is neither RSA, ECDSA nor Ed25519")

// joseKey returns a key in the form that go-jose expects. Keys that are not in memory, such
// as keys in hardware tokens, can only sign.
func joseKey(key crypto.Signer) any {
	switch key.(type) {
	case *rsa.PrivateKey, *ecdsa.PrivateKey, ed25519.PrivateKey:
		return key
	}
	return cryptosigner.Opaque(key)
}

// algorithm selects an algorithm that the recipient accepts. An empty list means that the
// accepted algorithms are unknown.
func (k *Key) algorithm(accepted []string) (jose.SignatureAlgorithm, error) {
	if k == nil || k.Signer == nil {
		return "", errNoKey
	}
	can := algorithmsOf(k.Signer.Public())
	if k.Algorithm != "" {
		if !slices.Contains(can, k.Algorithm) {
			return "", fmt.Errorf("oauth: Key.Algorithm is %q, but the key is good for %q", k.Algorithm, can)
		}
		return jose.SignatureAlgorithm(k.Algorithm), nil
	}
	if len(can) == 0 {
		return "", errNoKey
	}
	for _, a := range can {
		if slices.Contains(accepted, a) {
			return jose.SignatureAlgorithm(a), nil
		}
	}
	return jose.SignatureAlgorithm(can[0]), nil
}

// algorithmsOf returns the algorithms that a key supports.
func algorithmsOf(public crypto.PublicKey) []string {
	switch k := public.(type) {
	case *rsa.PublicKey:
		return []string{"RS256", "PS256", "RS384", "PS384", "RS512", "PS512"}
	case *ecdsa.PublicKey:
		if a, ok := map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[k.Curve.Params().BitSize]; ok {
			return []string{a}
		}
	case ed25519.PublicKey:
		return []string{"EdDSA"}
	}
	return nil
}

// sign returns a signed JWT.
func sign(key crypto.Signer, algorithm jose.SignatureAlgorithm, id string, opts *jose.SignerOptions, claims map[string]any) (string, error) {
	if id != "" {
		opts = opts.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: joseKey(key)}, opts)
	if err != nil {
		return "", fmt.Errorf("oauth: %w", err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("oauth: %w", err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("oauth: %w", err)
	}
	return signed.CompactSerialize()
}

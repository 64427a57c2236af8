// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"
	"github.com/go-json-experiment/json"
)

// A Key signs.
type Key struct {
	// Signer has the private key: RSA, ECDSA or Ed25519.
	Signer crypto.Signer
	// Algorithm is that of the signature (RFC 7518), such as PS256. "" means ES256,
	// ES384 or ES512 by the curve, EdDSA, or RS256.
	Algorithm string
	// ID is sent as the key's "kid". "" means none.
	ID string
}

var errNoKey = errors.New("oauth: the key is neither RSA, ECDSA nor Ed25519")

// joseKey is a key as the library wants it. One that is not at hand, such as a
// hardware token's, only signs.
func joseKey(key crypto.Signer) any {
	switch key.(type) {
	case *rsa.PrivateKey, *ecdsa.PrivateKey, ed25519.PrivateKey:
		return key
	}
	return cryptosigner.Opaque(key)
}

// algorithm is how to sign for somebody who accepts one of a list; an empty one
// says nothing.
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

// algorithmsOf are those that a key is good for.
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

// sign makes a JWT.
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
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("oauth: %w", err)
	}
	return signed.CompactSerialize()
}

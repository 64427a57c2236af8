// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
)

// A signer signs access tokens. Its keys are derived from Options.Keys, so replicas need no
// other secret, and sign alike.
type signer struct {
	jose   jose.Signer
	public []byte // the JWK set of all keys
}

func newSigner(secrets [][]byte) (*signer, error) {
	var set jose.JSONWebKeySet
	s := &signer{}
	for i, secret := range secrets {
		seed, err := hkdf.Key(sha256.New, secret, nil, "psi authserver signature v1", ed25519.SeedSize)
		if err != nil {
			return nil, err
		}
		private := ed25519.NewKeyFromSeed(seed)
		sum := sha256.Sum256(private.Public().(ed25519.PublicKey)) //nolint:forcetypeassert // documented
		key := jose.JSONWebKey{Key: private, KeyID: base64.RawURLEncoding.EncodeToString(sum[:9]), Algorithm: string(jose.EdDSA), Use: "sig"}
		set.Keys = append(set.Keys, key.Public())
		if i > 0 {
			continue
		}
		opts := (&jose.SignerOptions{}).WithType("at+jwt")
		if s.jose, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key}, opts); err != nil {
			return nil, err
		}
	}
	var err error
	s.public, err = json.Marshal(set)
	return s, err
}

func (s *signer) sign(claims map[string]any) (string, error) {
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := s.jose.Sign(body)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// ErrInvalid is returned for every token that the ring did not seal for the given context.
// It does not say why.
var ErrInvalid = errors.New("seal: invalid token")

// MinKeyLen is the minimum length of a key in bytes.
const MinKeyLen = 16

const (
	keyIDLen = 4
	info     = "psi request state v1"
)

// A Ring seals with its first key and opens with any of its keys. It is safe for concurrent use.
type Ring struct{ keys func() []key }

type key struct {
	id   [keyIDLen]byte
	aead cipher.AEAD
}

// NewRing returns a ring of keys of at least MinKeyLen bytes. The first one seals. Without
// keys, the ring generates a random key, which no other process has, on first use: most
// servers never seal anything.
func NewRing(secrets ...[]byte) (*Ring, error) {
	if len(secrets) == 0 {
		return &Ring{sync.OnceValue(randomKey)}, nil
	}
	keys := make([]key, len(secrets))
	for i, secret := range secrets {
		if len(secret) < MinKeyLen {
			return nil, fmt.Errorf("seal: key %d has %d bytes, want at least %d", i, len(secret), MinKeyLen)
		}
		var err error
		if keys[i], err = deriveKey(secret); err != nil {
			return nil, err
		}
	}
	return &Ring{func() []key { return keys }}, nil
}

func randomKey() []key {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails
	k, err := deriveKey(secret)
	if err != nil {
		panic(fmt.Sprintf("seal: a key of %d bytes: %v", len(secret), err)) // cannot happen
	}
	return []key{k}
}

// deriveKey derives the key of the cipher, and the public ID by which Open finds it.
func deriveKey(secret []byte) (key, error) {
	derived, err := hkdf.Key(sha256.New, secret, nil, info, 32+keyIDLen)
	if err != nil {
		return key{}, err
	}
	block, err := aes.NewCipher(derived[:32])
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, err
	}
	return key{[keyIDLen]byte(derived[32:]), aead}, nil
}

// Seal encrypts plain, bound to context, and returns URL-safe text.
func (r *Ring) Seal(plain, context []byte) string {
	k := r.keys()[0]
	token := append(make([]byte, 0, keyIDLen+len(plain)+k.aead.Overhead()), k.id[:]...)
	token = k.aead.Seal(token, nil, plain, context) //nolint:gosec // the AEAD makes its nonces itself
	return base64.RawURLEncoding.EncodeToString(token)
}

// Open reverses Seal. Its error is ErrInvalid. A token has only one encoding,
// so equal tokens are equal texts.
func (r *Ring) Open(token string, context []byte) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(sealed) < keyIDLen || strings.ContainsAny(token, "\r\n") { // ignored by base64 decoders
		return nil, ErrInvalid
	}
	for _, k := range r.keys() {
		if [keyIDLen]byte(sealed) != k.id {
			continue
		}
		if plain, err := k.aead.Open(nil, nil, sealed[keyIDLen:], context); err == nil {
			return plain, nil
		}
	}
	return nil, ErrInvalid
}

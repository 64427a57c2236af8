// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// ErrInvalid is returned for every token that this ring did not seal for the
// given context, without saying why.
var ErrInvalid = errors.New("seal: invalid token")

// MinKeyLen is the least length of a key in bytes.
const MinKeyLen = 16

const (
	keyIDLen = 4
	info     = "psi request state v1"
)

// A Ring seals with its first key and opens with any. It is safe for concurrent
// use.
type Ring struct{ keys func() []key }

type key struct {
	id    [keyIDLen]byte
	aead  cipher.AEAD
	fixed cipher.AEAD // the same, with nonces that are given
	nonce []byte      // the key of such nonces
}

// NewRing makes a ring of keys of any length from MinKeyLen on, the one to seal
// with first. Without keys it makes a random one, which no other process has, when
// it is first needed: most servers never seal anything.
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
		panic(fmt.Sprintf("seal: a key of %d bytes: %v", len(secret), err)) // there is no reason why
	}
	return []key{k}
}

// deriveKey makes the cipher's key and the public id that finds it again.
func deriveKey(secret []byte) (key, error) {
	derived, err := hkdf.Key(sha256.New, secret, nil, info, 32+keyIDLen+32)
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
	fixed, err := cipher.NewGCM(block)
	if err != nil {
		return key{}, err
	}
	return key{[keyIDLen]byte(derived[32:]), aead, fixed, derived[32+keyIDLen:]}, nil
}

// Seal encrypts plain, bound to context, as URL-safe text.
func (r *Ring) Seal(plain, context []byte) string {
	k := r.keys()[0]
	token := append(make([]byte, 0, keyIDLen+len(plain)+k.aead.Overhead()), k.id[:]...)
	token = k.aead.Seal(token, nil, plain, context) //nolint:gosec // the AEAD makes its nonces itself
	return base64.RawURLEncoding.EncodeToString(token)
}

// SealSame is Seal that makes the same token of the same plain and context every time, for
// tokens that are compared. The nonce is a digest of both under a key of its own, so that no
// two texts have the same.
func (r *Ring) SealSame(plain, context []byte) string {
	k := r.keys()[0]
	mac := hmac.New(sha256.New, k.nonce)
	_, _ = fmt.Fprintf(mac, "%d:%s%s", len(context), context, plain) // never fails
	nonce := mac.Sum(nil)[:k.fixed.NonceSize()]
	token := append(append(make([]byte, 0, keyIDLen+len(plain)+k.aead.Overhead()), k.id[:]...), nonce...)
	return base64.RawURLEncoding.EncodeToString(k.fixed.Seal(token, nonce, plain, context))
}

// Open is the inverse of Seal and SealSame. Its error is ErrInvalid. A token can be written in one way
// only, so that equal tokens are equal texts.
func (r *Ring) Open(token string, context []byte) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(sealed) < keyIDLen || strings.ContainsAny(token, "\r\n") { // which decoders of base64 pass over
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

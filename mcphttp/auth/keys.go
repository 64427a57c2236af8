// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/go-psi/psi/mcp"
)

// minKey is the minimum length of an API key in bytes. Shorter keys can be guessed.
const minKey = 16

// A KeyHash is the SHA-256 hash of an API key, to be stored instead of the key. A plain
// hash is secure only for keys that are long and random.
type KeyHash [32]byte

// HashKey returns the hash of an API key.
func HashKey(key string) KeyHash { return KeyHash(digestOf(key)) }

// ParseKeyHash parses the result of [KeyHash.String].
func ParseKeyHash(text string) (KeyHash, error) {
	var h KeyHash
	b, err := hex.DecodeString(text)
	if err == nil && len(b) != len(h) {
		err = fmt.Errorf("%d digits, expected %d", len(text), hex.EncodedLen(len(h)))
	}
	if err != nil {
		return KeyHash{}, fmt.Errorf("auth: the hash of a key: %w", err)
	}
	copy(h[:], b)
	return h, nil
}

// String returns the hash in hexadecimal.
func (h KeyHash) String() string { return hex.EncodeToString(h[:]) }

// KeyOptions configure verifiers of API keys. Nil means the zero KeyOptions.
type KeyOptions struct {
	// Header is the header that contains the key, such as "X-API-Key". Empty means that
	// the key is sent as a bearer token: "Authorization: Bearer …".
	Header string
}

// APIKeys returns a [Verifier] of API keys. keys maps each key to its principal. If the
// Expiry of the principal has passed, the key is rejected. Only hashes of the keys are
// kept: see [HashedAPIKeys]. opts may be nil. APIKeys panics if a key is shorter than 16
// bytes, or if its principal is nil or has no Subject: two principals without a Subject
// would count as the same caller and could use each other's sessions.
func APIKeys(keys map[string]*mcp.Principal, opts *KeyOptions) Verifier {
	hashed := make(map[KeyHash]*mcp.Principal, len(keys))
	for key, p := range keys {
		if len(key) < minKey {
			panic(fmt.Sprintf("auth: an API key has %d bytes: at least %d are needed, made at random", len(key), minKey))
		}
		hashed[HashKey(key)] = p
	}
	return HashedAPIKeys(hashed, opts)
}

// HashedAPIKeys is like [APIKeys] but takes the hashes of the keys. Keys are looked up by
// hash, so that the time of a lookup reveals nothing about similar keys. Unknown keys are
// not cached. HashedAPIKeys panics if a principal is nil or has no Subject.
func HashedAPIKeys(keys map[KeyHash]*mcp.Principal, opts *KeyOptions) Verifier {
	for h, p := range keys {
		if p == nil {
			panic(fmt.Sprintf("auth: the API key with the hash %v has no principal", h))
		}
		if p.Subject == "" {
			panic(fmt.Sprintf("auth: the principal of the API key with the hash %v has no Subject, which tells it from others", h))
		}
	}
	keys = maps.Clone(keys)
	return LookupAPIKeys(func(_ context.Context, h KeyHash) (*mcp.Principal, error) { return keys[h], nil }, opts)
}

// LookupAPIKeys is like [HashedAPIKeys] for keys that are stored elsewhere. lookup returns
// the principal for the hash of a key, nil if the key is unknown, or an error if the lookup
// failed. The principal must have a Subject. lookup is called for every request and must be
// safe for concurrent use. opts may be nil. LookupAPIKeys panics if lookup is nil.
func LookupAPIKeys(lookup func(ctx context.Context, key KeyHash) (*mcp.Principal, error), opts *KeyOptions) Verifier {
	if lookup == nil {
		panic("auth: LookupAPIKeys wants a function")
	}
	v := &keyVerifier{lookup: lookup}
	if opts != nil {
		v.header = http.CanonicalHeaderKey(opts.Header)
	}
	return v
}

type keyVerifier struct {
	lookup func(ctx context.Context, key KeyHash) (*mcp.Principal, error)
	header string // canonical; "" means Authorization
}

func (v *keyVerifier) Challenges() []string {
	if v.header == "" {
		return []string{schemeBearer}
	}
	return []string{`ApiKey header="` + quotable(v.header) + `"`}
}

func (v *keyVerifier) Verify(r *http.Request) (*mcp.Principal, error) {
	key, err := v.keyOf(r)
	if err != nil {
		return nil, err
	}
	p, err := v.lookup(r.Context(), HashKey(key))
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return nil, NewInvalidTokenError("the API key is unknown")
	case !p.Expiry.IsZero() && !time.Now().Before(p.Expiry):
		return nil, NewInvalidTokenError("the API key has expired")
	}
	return p, nil
}

func (v *keyVerifier) keyOf(r *http.Request) (string, error) {
	if v.header == "" {
		return credentialsOf(r, schemeBearer)
	}
	values := r.Header[v.header]
	if len(values) == 0 {
		return "", ErrNoCredentials
	}
	if len(values) > 1 || !isToken(values[0]) {
		return "", malformed("the header %s must have one key of at most %d bytes", v.header, maxToken)
	}
	return values[0], nil
}

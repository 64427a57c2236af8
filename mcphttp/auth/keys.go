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

// minKey is how long an API key is at least, in bytes: shorter ones can be guessed.
const minKey = 16

// A KeyHash stands for an API key where keys are kept: it is its SHA-256, which is
// enough for keys that are long and random, and only for these.
type KeyHash [32]byte

// HashKey is the hash of an API key.
func HashKey(key string) KeyHash { return KeyHash(digestOf(key)) }

// ParseKeyHash reads what [KeyHash.String] writes.
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

// String is the hash in hexadecimal digits.
func (h KeyHash) String() string { return hex.EncodeToString(h[:]) }

// KeyOptions configure verifiers of API keys. Nil means the zero KeyOptions.
type KeyOptions struct {
	// Header is the header that has the key, alone, such as "X-API-Key". Empty means
	// that it is sent as a bearer token: "Authorization: Bearer …".
	Header string
}

// APIKeys is a [Verifier] of API keys: each has the principal whom it is for. A
// principal whose Expiry has passed is refused. The map is copied, as hashes: see
// [HashedAPIKeys]. opts may be nil. It panics if a key is shorter than 16 bytes, has no
// principal, or one without a Subject: two of these would be the same caller, with each
// other's sessions.
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

// HashedAPIKeys is as [APIKeys] for keys of which only the hashes are kept. A key is
// found by its hash, which takes as long for a key that is almost right as for any
// other, and nothing is remembered of keys that are wrong. It panics if a hash has no
// principal, or one without a Subject.
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

// LookupAPIKeys is as [HashedAPIKeys] for keys that are kept elsewhere. lookup finds
// the principal of a key by its hash, and returns nil if there is none; an error means
// that it could not look. The principal must have a Subject. It is called with every request, at once for several. opts
// may be nil; LookupAPIKeys panics if lookup is.
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
		return nil, Invalid("the API key is not known")
	case !p.Expiry.IsZero() && !time.Now().Before(p.Expiry):
		return nil, Invalid("the API key has expired")
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

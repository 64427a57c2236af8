// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/redact"
)

const (
	maxKeySet  = 1 << 20 // bytes
	maxKeys    = 64
	minRSABits = 2048 // package jose rejects keys longer than 4096 bits, which are too slow
)

const (
	keyRefresh    = 15 * time.Minute // age at which keys in use are fetched again
	minKeyRefresh = 10 * time.Second // minimum time between fetches, even for unknown keys
	maxKeyAge     = 24 * time.Hour   // how long keys remain in use if they cannot be fetched again
)

// A keySet holds the public keys of an issuer. Keys are fetched again in the background
// while the old ones remain in use, so few requests wait for a fetch. Waiting requests
// share one fetch.
type keySet struct {
	load    func(ctx context.Context) ([]byte, error) // nil if the keys are configured
	fetches async.Flight[struct{}, struct{}]

	generation atomic.Uint64 // number of times the set has changed

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	sum     digest    // of the JWK set document
	fetched time.Time // end of the last fetch that succeeded
	tried   time.Time // end of the last fetch
	err     error     // of the last fetch
}

func newKeySet(issuer string, o *JWTOptions) (*keySet, error) {
	// Detached: a fetch continues if its caller is canceled.
	s := &keySet{fetches: async.Flight[struct{}, struct{}]{Detached: true}}
	if o.Keys != nil {
		keys, err := parseKeys(o.Keys)
		if err != nil {
			return nil, fmt.Errorf("auth: JWTOptions.Keys: %w", err)
		}
		s.keys = keys
		return s, nil
	}
	fetch := newFetcher(o.Client, maxKeySet)
	if o.JWKSURL != "" {
		s.load = func(ctx context.Context) ([]byte, error) { return fetch.get(ctx, o.JWKSURL) }
		_, err := parseEndpoint("JWTOptions.JWKSURL", o.JWKSURL)
		return s, err
	}
	s.load = (&discovery{fetch: fetch, issuer: issuer}).load
	_, err := parseEndpoint("without JWTOptions.JWKSURL or Keys, the issuer", issuer)
	return s, err
}

// verify verifies the signature of a token with the keys of the set and returns its
// payload.
func (s *keySet) verify(ctx context.Context, signed *jose.JSONWebSignature, h jose.Header) ([]byte, error) {
	keys, err := s.find(ctx, h.KeyID, h.Algorithm)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, NewInvalidTokenError("the token is signed with a key that its issuer does not have").because(fmt.Errorf("the key's id is %.80q", h.KeyID))
	}
	payload, err := verifyAny(signed, keys)
	if err == nil || h.KeyID != "" {
		return payload, err
	}
	// The token names no key, so the right one may have been published since the last
	// fetch.
	generation := s.generation.Load()
	if s.update(ctx) != nil || s.generation.Load() == generation {
		return nil, err
	}
	return verifyAny(signed, s.match(h.KeyID, h.Algorithm))
}

func verifyAny(signed *jose.JSONWebSignature, keys []jose.JSONWebKey) ([]byte, error) {
	for i := range keys {
		if payload, err := signed.Verify(keys[i].Key); err == nil {
			return payload, nil
		}
	}
	return nil, NewInvalidTokenError("the signature of the token is wrong")
}

// find returns the keys that can verify a token. It returns none if the issuer has no such
// key, and an error if the keys cannot be fetched.
func (s *keySet) find(ctx context.Context, kid, alg string) ([]jose.JSONWebKey, error) {
	if keys := s.match(kid, alg); len(keys) > 0 {
		if s.isOld() {
			s.fetches.Start(ctx, struct{}{}, s.fetch)
		}
		return keys, nil
	}
	if err := s.update(ctx); err != nil {
		return nil, err
	}
	keys := s.match(kid, alg)
	if len(keys) > 0 {
		return keys, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, fmt.Errorf("auth: the issuer's keys: %w", s.err)
	}
	return nil, nil
}

// match returns the cached keys for alg with the given ID, or with any ID if kid is empty.
// It returns none if the cached keys are so old that they must be fetched first.
func (s *keySet) match(kid, alg string) []jose.JSONWebKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load != nil && (time.Since(s.fetched) > maxKeyAge || time.Since(s.tried) > 2*keyRefresh) {
		return nil
	}
	var found []jose.JSONWebKey
	for _, k := range s.keys {
		if (kid == "" || k.KeyID == kid) && (k.Algorithm == "" || k.Algorithm == alg) {
			found = append(found, k)
		}
	}
	return found
}

// isOld reports whether it is time to fetch the keys again.
func (s *keySet) isOld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load != nil && time.Since(s.fetched) > keyRefresh
}

// update waits for the fetch in flight, or fetches the keys. It returns an error only if
// ctx is done first.
func (s *keySet) update(ctx context.Context) error {
	_, err := s.fetches.Do(ctx, struct{}{}, s.fetch)
	if _, ok := errors.AsType[*async.PanicError](err); ok {
		return nil // s.err is set
	}
	return err
}

// errIncomplete is the error of a fetch that panicked in a user's RoundTripper.
var errIncomplete = errors.New("the last fetch did not complete")

// fetch fetches the keys, unless the last attempt was less than minKeyRefresh ago.
func (s *keySet) fetch(ctx context.Context) (_ struct{}, _ error) {
	if !s.startFetch() {
		return
	}
	defer s.noteTried() // even if load panics
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	text, err := s.load(ctx)
	var keys []jose.JSONWebKey
	if err == nil {
		keys, err = parseKeys(text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err != nil && !errors.Is(err, errNoKeys) {
		return
	}
	s.fetched, s.keys = time.Now(), keys // no keys if the issuer has withdrawn all of them
	if sum := digestOf(string(text)); sum != s.sum {
		s.sum = sum
		s.generation.Add(1)
	}
	return
}

// startFetch reports whether a fetch is due. If so, it sets s.err to errIncomplete until
// the fetch completes.
func (s *keySet) startFetch() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load == nil || time.Since(s.tried) < minKeyRefresh {
		return false
	}
	s.err = errIncomplete
	return true
}

func (s *keySet) noteTried() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = time.Now()
}

var errNoKeys = errors.New("the JWK set has no public key for signatures")

// parseKeys parses a JWK set. It returns the keys that can verify a token, and ignores keys
// of unknown types.
func parseKeys(text []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("the JWK set: %w", err)
	}
	if set.Keys == nil {
		return nil, errors.New("the JWK set has no member keys")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the JWK set has %d keys, more than %d", len(set.Keys), maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(raw) == nil && canVerify(&k) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errNoKeys
	}
	return keys, nil
}

func canVerify(k *jose.JSONWebKey) bool {
	return (k.Use == "" || k.Use == "sig") && isStrongPublic(k)
}

// isStrongPublic reports whether k is a public key that is long enough.
func isStrongPublic(k *jose.JSONWebKey) bool {
	if !k.Valid() || !k.IsPublic() {
		return false
	}
	pub, isRSA := k.Key.(*rsa.PublicKey)
	return !isRSA || pub.N.BitLen() >= minRSABits
}

// A discovery fetches the keys of an issuer found through its metadata. It is not safe for
// concurrent use.
type discovery struct {
	fetch  *fetcher
	issuer string
	url    string // of the keys, from the last metadata that could be read
}

// load reads the metadata every time, because an issuer that moves its keys may leave the
// old ones in place.
func (d *discovery) load(ctx context.Context) ([]byte, error) {
	switch address, err := d.discover(ctx); {
	case err == nil:
		d.url = address
	case d.url == "":
		return nil, err
	}
	return d.fetch.get(ctx, d.url)
}

// discover tries the well-known URLs in the same order as MCP clients.
func (d *discovery) discover(ctx context.Context) (string, error) {
	u, err := parseEndpoint("the issuer", d.issuer)
	if err != nil {
		return "", err
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{
		origin + "/.well-known/oauth-authorization-server" + path,
		origin + "/.well-known/openid-configuration" + path,
	}
	if path != "" {
		places = append(places, origin+path+"/.well-known/openid-configuration")
	}
	var problems []error
	for _, place := range places {
		address, err := d.read(ctx, place)
		if err == nil {
			return address, nil
		}
		problems = append(problems, err)
	}
	return "", fmt.Errorf("the metadata of %s: %w", redact.URL(d.issuer), errors.Join(problems...))
}

func (d *discovery) read(ctx context.Context, place string) (string, error) {
	text, err := d.fetch.get(ctx, place)
	if err != nil {
		return "", err
	}
	var m struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return "", fmt.Errorf("%s: %w", place, err)
	}
	if m.Issuer != d.issuer {
		return "", fmt.Errorf("%s is of the issuer %.200q", place, redact.URL(m.Issuer))
	}
	if _, err := parseURL(m.Keys); err != nil {
		return "", fmt.Errorf("%s: jwks_uri %.200q: %w", place, redact.URL(m.Keys), err)
	}
	return m.Keys, nil
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxKeySet  = 1 << 20 // bytes
	maxKeys    = 64
	minRSABits = 2048
	maxRSABits = 8192 // larger ones take too long
)

// keySet has the public keys of an issuer. Few requests wait for them: a set that gets
// old is fetched again while it is used, and one fetch is for all who wait.
type keySet struct {
	load                          func(ctx context.Context) ([]byte, error) // nil if the keys are given
	refresh, minRefresh, maxStale time.Duration

	generation atomic.Uint64 // how often the set has changed

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	sum     digest        // of the document
	fetched time.Time     // when a fetch last succeeded
	tried   time.Time     // when a fetch last began
	err     error         // of the last fetch
	running chan struct{} // closed when the fetch that is on its way has ended
}

func newKeySet(issuer string, o *JWTOptions) *keySet {
	s := &keySet{refresh: o.Refresh, minRefresh: o.MinRefresh, maxStale: o.MaxStale}
	if o.Keys != nil {
		keys, err := parseKeys(o.Keys)
		if err != nil {
			panic(fmt.Sprintf("auth: JWTOptions.Keys: %v", err))
		}
		s.keys = keys
		return s
	}
	fetch := newFetcher(o.Client, maxKeySet)
	if o.JWKSURL != "" {
		mustEndpoint("JWTOptions.JWKSURL", o.JWKSURL)
		s.load = func(ctx context.Context) ([]byte, error) { return fetch.get(ctx, o.JWKSURL) }
		return s
	}
	mustEndpoint("without JWTOptions.JWKSURL or Keys, the issuer", issuer)
	s.load = (&discovery{fetch: fetch, issuer: issuer}).load
	return s
}

// verify returns the payload of a token that a key of the set has signed.
func (s *keySet) verify(ctx context.Context, signed *jose.JSONWebSignature, h jose.Header) ([]byte, error) {
	keys, err := s.find(ctx, h.KeyID, h.Algorithm)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, Invalid("the token is signed with a key that its issuer does not have").because(fmt.Errorf("the key's id is %.80q", h.KeyID))
	}
	payload, err := verifyAny(signed, keys)
	if err == nil || h.KeyID != "" {
		return payload, err
	}
	// Without an id nobody knows whether the right key was there.
	generation := s.generation.Load()
	if s.wait(ctx, s.start(ctx)) != nil || s.generation.Load() == generation {
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
	return nil, Invalid("the signature of the token is wrong")
}

// find returns the keys that a token may be signed with: none if the issuer does not
// have it, an error if that is not known.
func (s *keySet) find(ctx context.Context, kid, alg string) ([]jose.JSONWebKey, error) {
	if keys := s.match(kid, alg); len(keys) > 0 {
		if s.age() > s.refresh {
			s.start(ctx)
		}
		return keys, nil
	}
	if err := s.wait(ctx, s.start(ctx)); err != nil {
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

// match are the keys at hand for an id, or for any if it is empty.
func (s *keySet) match(kid, alg string) []jose.JSONWebKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load != nil && time.Since(s.fetched) > s.maxStale {
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

// age is how old the keys are; given ones do not age.
func (s *keySet) age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load == nil {
		return 0
	}
	return time.Since(s.fetched)
}

// start fetches the keys, unless that was tried a moment ago. It returns what the end
// of the fetch closes, nil if there is none on its way.
func (s *keySet) start(ctx context.Context) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return s.running
	}
	now := time.Now()
	if s.load == nil || !s.tried.IsZero() && now.Sub(s.tried) < s.minRefresh {
		return nil
	}
	s.tried, s.running = now, make(chan struct{})
	go s.fetch(context.WithoutCancel(ctx), s.running)
	return s.running
}

func (s *keySet) wait(ctx context.Context, fetched <-chan struct{}) error {
	if fetched == nil {
		return nil
	}
	select {
	case <-fetched:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fetch runs on a goroutine and a time limit of its own, whoever has asked for it.
func (s *keySet) fetch(ctx context.Context, done chan<- struct{}) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	defer close(done)
	text, keys, err := s.get(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.err = nil, err
	if err != nil {
		return
	}
	s.fetched, s.keys = time.Now(), keys
	if sum := digestOf(string(text)); sum != s.sum {
		s.sum = sum
		s.generation.Add(1)
	}
}

func (s *keySet) get(ctx context.Context) (text []byte, keys []jose.JSONWebKey, err error) {
	defer func() {
		if v := recover(); v != nil { // of somebody's RoundTripper
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	if text, err = s.load(ctx); err != nil {
		return nil, nil, err
	}
	keys, err = parseKeys(text)
	return text, keys, err
}

// parseKeys reads a JWK set. Of its keys it takes the ones that can verify a token:
// a key of a kind that is not known here does not spoil the others.
func parseKeys(text []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("the JWK set: %w", err)
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
		return nil, errors.New("the JWK set has no public key for signatures")
	}
	return keys, nil
}

func canVerify(k *jose.JSONWebKey) bool {
	if !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
		return false
	}
	if pub, ok := k.Key.(*rsa.PublicKey); ok {
		return pub.N.BitLen() >= minRSABits && pub.N.BitLen() <= maxRSABits
	}
	return true
}

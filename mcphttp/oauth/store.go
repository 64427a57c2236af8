// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// A StoreKey says what a value in a [Store] is for.
type StoreKey struct {
	// Issuer is the authorization server's.
	Issuer string
	// Resource is the URL of the MCP server that a token is for. "" stands for the
	// registration of the client at the issuer.
	Resource string
}

// A Store remembers tokens and registrations from one process to the next. What it
// keeps is secret. Its methods are called concurrently, also by several transports
// that share it, and must not keep or change the slices they are given. Package
// storetest tests implementations.
type Store interface {
	// Load returns the value that was saved last under the key, nil if there is none.
	Load(ctx context.Context, key StoreKey) ([]byte, error)
	// Save replaces the value under the key in one step; nil removes it.
	Save(ctx context.Context, key StoreKey, value []byte) error
}

// A MemoryStore forgets everything when the program ends. Several transports may
// share one.
type MemoryStore struct {
	mu     sync.Mutex
	values map[StoreKey][]byte
}

// NewMemoryStore makes an empty store.
func NewMemoryStore() *MemoryStore { return &MemoryStore{values: map[StoreKey][]byte{}} }

// maxKept is how many values a MemoryStore keeps. One that has more to do with
// than that forgets some.
const maxKept = 10_000

// Load implements [Store].
func (s *MemoryStore) Load(_ context.Context, key StoreKey) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.values[key]), nil
}

// Save implements [Store].
func (s *MemoryStore) Save(_ context.Context, key StoreKey, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value == nil {
		delete(s.values, key)
		return nil
	}
	for k := range s.values {
		if len(s.values) < maxKept {
			break
		}
		delete(s.values, k)
	}
	s.values[key] = bytes.Clone(value)
	return nil
}

// token is an access token with everything that belongs to it. It is not changed
// once it was shared.
type token struct {
	Access   string    `json:"access_token"`
	DPoP     bool      `json:"dpop,omitzero"`
	Refresh  string    `json:"refresh_token,omitzero"`
	Expiry   time.Time `json:"expiry,omitzero"`
	Scopes   []string  `json:"scopes,omitzero"` // that were granted
	Wanted   []string  `json:"wanted,omitzero"` // that were asked for
	Issuer   string    `json:"issuer"`
	Resource string    `json:"resource"`
	Client   string    `json:"client_id,omitzero"`
	Key      []byte    `json:"key,omitzero"` // JWK of the key it is bound to, if that is ours
	Thumb    string    `json:"jkt,omitzero"` // thumbprint of that key

	by *Client // who got it, nil if it was stored
}

// expired reports whether a token has ended.
func (k *token) expired(now time.Time) bool { return !k.Expiry.IsZero() && !now.Before(k.Expiry) }

// load reads a value, which is left alone if there is none.
func load(ctx context.Context, s Store, key StoreKey, into any) (bool, error) {
	data, err := s.Load(ctx, key)
	if err != nil || len(data) == 0 {
		return false, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, errors.New("oauth: a stored value is damaged") // without quoting it
	}
	return true, nil
}

func save(ctx context.Context, s Store, key StoreKey, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.Save(ctx, key, data)
}

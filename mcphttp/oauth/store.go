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

// A StoreKey identifies a value in a [Store].
type StoreKey struct {
	// Issuer is the authorization server.
	Issuer string
	// Resource is the URL of the MCP server that a token is for. "" means the
	// registration of the client at the issuer.
	Resource string
}

// A Store keeps tokens and registrations across restarts. Its values are secret. Its
// methods must be safe for concurrent use by several transports, and must not retain or
// modify the slices passed to them. A store that several transports or processes use at the
// same time should be a [Locker], as all stores in this package are. Package oauthtest
// tests implementations.
type Store interface {
	// Load returns the value saved last under the key, or nil if there is none.
	Load(ctx context.Context, key StoreKey) ([]byte, error)
	// Save replaces the value under the key atomically. Nil removes it.
	Save(ctx context.Context, key StoreKey, value []byte) error
}

// A Locker is a [Store] that several transports or processes can share. Without locks, two
// of them may use the same refresh token concurrently, which authorization servers treat as
// theft.
type Locker interface {
	Store
	// Lock acquires the lock of key, waiting until it is free or ctx is done. The returned
	// context is canceled when ctx is done, when unlock is called, or when the lock may be
	// lost because it has been held for too long. The caller must call unlock.
	Lock(ctx context.Context, key StoreKey) (held context.Context, unlock func(), err error)
}

// A MemoryStore keeps values in memory, until the program ends. Several transports may
// share one. The zero MemoryStore is empty and ready to use.
type MemoryStore struct {
	mu     sync.Mutex
	values map[StoreKey][]byte
	locked map[StoreKey]chan struct{} // closed when the key is unlocked
}

var _ Locker = (*MemoryStore)(nil)

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore { return &MemoryStore{} }

// maxKept is the maximum number of values in a MemoryStore. If it is full, it drops
// arbitrary values.
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
	if s.values == nil {
		s.values = map[StoreKey][]byte{}
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

// Lock implements [Locker].
func (s *MemoryStore) Lock(ctx context.Context, key StoreKey) (held context.Context, unlock func(), err error) {
	mine := make(chan struct{})
	for {
		other := s.tryLock(key, mine)
		if other == mine {
			break
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	held, cancel := context.WithCancel(ctx)
	return held, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.locked, key)
		close(mine)
	}, nil
}

// tryLock locks a key with the channel mine unless it is locked. It returns the channel
// that the key is locked with.
func (s *MemoryStore) tryLock(key StoreKey, mine chan struct{}) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.locked[key]; other != nil {
		return other
	}
	if s.locked == nil {
		s.locked = map[StoreKey]chan struct{}{}
	}
	s.locked[key] = mine
	return mine
}

// A token is an access token with its properties. It must not be modified once it is
// shared.
type token struct {
	Access   string    `json:"access_token"`
	DPoP     bool      `json:"dpop,omitzero"`
	Refresh  string    `json:"refresh_token,omitzero"`
	Expiry   time.Time `json:"expiry,omitzero"`
	Scopes   []string  `json:"scopes,omitzero"` // granted scopes
	Wanted   []string  `json:"wanted,omitzero"` // requested scopes
	Issuer   string    `json:"issuer"`
	Resource string    `json:"resource"`
	Client   string    `json:"client_id,omitzero"`
	Key      []byte    `json:"key,omitzero"` // JWK of the key it is bound to, if generated here
	Thumb    string    `json:"jkt,omitzero"` // thumbprint of that key

	by *Client // client that obtained it; nil if it was loaded from the store
}

// expired reports whether a token has expired.
func (k *token) expired(now time.Time) bool { return !k.Expiry.IsZero() && !now.Before(k.Expiry) }

// lock acquires the lock of a key if the store is a [Locker].
func lock(ctx context.Context, s Store, key StoreKey) (held context.Context, unlock func(), err error) {
	if l, ok := s.(Locker); ok {
		return l.Lock(ctx, key)
	}
	return ctx, func() {}, nil
}

// load returns the value under a key, or the zero value if nothing was saved.
func load[T any](ctx context.Context, s Store, key StoreKey) (T, error) {
	var value, none T
	data, err := s.Load(ctx, key)
	if err != nil || len(data) == 0 {
		return none, err
	}
	if json.Unmarshal(data, &value) != nil {
		return none, errors.New("oauth: a stored value is damaged") // without quoting it
	}
	return value, nil
}

func save(ctx context.Context, s Store, key StoreKey, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.Save(ctx, key, data)
}

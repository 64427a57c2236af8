// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/seal"
	"github.com/go-psi/psi/mcp/store"
)

// A SharedStore keeps tokens and registrations in a [store.Values], for processes that act
// for the same user. It encrypts the values, and is a [Locker]: only one process at a time
// refreshes a token. Values expire long after they were saved. It must be created by
// [NewSharedStore].
type SharedStore struct {
	values store.Values
	ring   *seal.Ring
}

var _ Locker = (*SharedStore)(nil)

// NewSharedStore returns a store that keeps its data in values. The first key encrypts, and
// all keys decrypt. All processes must have the same keys. NewSharedStore panics if values
// is nil, if there is no key, or if a key is shorter than 16 bytes.
func NewSharedStore(values store.Values, keys ...[]byte) *SharedStore {
	ring, err := seal.NewRing(keys...)
	if values == nil || len(keys) == 0 || err != nil {
		panic(fmt.Sprintf("oauth.NewSharedStore: there must be values, and keys of at least %d bytes", seal.MinKeyLen))
	}
	return &SharedStore{values, ring}
}

// sharedLifetime is how long a value is stored.
const sharedLifetime = 365 * 24 * time.Hour

// Load implements [Store].
func (s *SharedStore) Load(ctx context.Context, key StoreKey) ([]byte, error) {
	s.mustBeMade()
	sealed, _, err := s.values.Get(ctx, key.shared("value"))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value, err := s.ring.Open(string(sealed), key.digest())
	if err != nil {
		return nil, errors.New("oauth: a shared value cannot be decrypted: was it saved with a key that NewSharedStore no longer has?")
	}
	return value, nil
}

// Save implements [Store].
func (s *SharedStore) Save(ctx context.Context, key StoreKey, value []byte) error {
	s.mustBeMade()
	name := key.shared("value")
	if value == nil {
		if _, err := s.values.Take(ctx, name); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return nil
	}
	sealed := []byte(s.ring.Seal(value, key.digest()))
	return store.Update(ctx, s.values, name, sharedLifetime, func([]byte) ([]byte, error) { return sealed, nil })
}

func (s *SharedStore) mustBeMade() {
	made.Check(s != nil && s.ring != nil, "oauth: a SharedStore", "NewSharedStore")
}

// A lock is a value that names its owner, or is empty if the lock is free. It expires after
// lockTTL in case its owner has died. The owner stops before that, after lockHeld on its
// own clock, which started earlier.
const (
	lockTTL  = time.Minute
	lockHeld = lockTTL - 10*time.Second
	lockPoll = 100 * time.Millisecond
)

// Lock implements [Locker]. If the process that holds a lock dies, others wait for up to a
// minute.
func (s *SharedStore) Lock(ctx context.Context, key StoreKey) (held context.Context, unlock func(), err error) {
	// Two processes that use one refresh token look like a thief to an authorization server.
	// The owner stops before the lease ends by its own clock, which started earlier, so no
	// clocks are compared.
	s.mustBeMade()
	name, owner := key.shared("lock"), []byte(rand.Text())
	for {
		began := time.Now()
		version, err := s.tryLock(ctx, name, owner)
		if err == nil {
			held, cancel := context.WithDeadline(ctx, began.Add(lockHeld))
			return held, func() {
				cancel()
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockTTL-lockHeld)
				defer cancel()
				_, _ = s.values.Put(ctx, name, nil, version, lockTTL) // otherwise it expires
			}, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return nil, nil, err
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// tryLock acquires a lock if it is free. Otherwise it returns store.ErrConflict.
func (s *SharedStore) tryLock(ctx context.Context, name string, owner []byte) (version uint64, err error) {
	current, version, err := s.values.Get(ctx, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		version = 0
	case err != nil:
		return 0, err
	case len(current) > 0:
		return 0, store.ErrConflict
	}
	return s.values.Put(ctx, name, owner, version, lockTTL)
}

// digest identifies the key.
func (k StoreKey) digest() []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "oauth %d %s %s", len(k.Issuer), k.Issuer, k.Resource))
	return sum[:]
}

func (k StoreKey) shared(kind string) string {
	return "psi/oauth/" + kind + "/" + hex.EncodeToString(k.digest())
}

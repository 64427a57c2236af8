// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/store"
)

var contractTests = []test{
	{"InvalidKeys", testInvalidKeys},
	{"InvalidNumbers", testInvalidNumbers},
	{"DoneContext", testDoneContext},
	{"Update", testUpdate},
}

// steps are all methods of a store with the key, or name, as the only variable.
var steps = map[string]func(ctx context.Context, s store.Store, key string) error{
	"Get": func(ctx context.Context, s store.Store, key string) error {
		_, _, err := s.Get(ctx, key)
		return err
	},
	"Put": func(ctx context.Context, s store.Store, key string) error {
		_, err := s.Put(ctx, key, nil, 0, lasting)
		return err
	},
	"Take": func(ctx context.Context, s store.Store, key string) error {
		_, err := s.Take(ctx, key)
		return err
	},
	"Publish": func(ctx context.Context, s store.Store, key string) error {
		return s.Publish(ctx, key, nil)
	},
	"Subscribe": func(ctx context.Context, s store.Store, key string) error {
		subscription, err := s.Subscribe(ctx, key)
		if err != nil {
			return err
		}
		return subscription.Close()
	},
}

func testInvalidKeys(t *testing.T, s store.Store) {
	for name, step := range steps {
		for _, key := range []string{"", "\xff", strings.Repeat("k", store.MaxKey+1)} {
			want(t, name+" with an invalid key", step(t.Context(), s, key), store.ErrInvalid)
		}
	}
}

func testInvalidNumbers(t *testing.T, s store.Store) {
	key := newKey()
	_, err := s.Put(t.Context(), key, nil, 0, -1)
	want(t, "Put with a negative TTL", err, store.ErrInvalid)
}

func testDoneContext(t *testing.T, s store.Store) {
	key, missing := newKey(), newKey()
	version := put(t, s, key, "value", 0, lasting)
	subscription := subscribe(t, s, key)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, step := range steps {
		want(t, name+" with a done context", step(ctx, s, key), context.Canceled)
		want(t, name+" with a done context", step(ctx, s, missing), context.Canceled)
	}
	check(t, s, key, "value", version)
	publish(t, s, key, "message")
	receive(t, subscription, "message")
	_, _, err := s.Get(t.Context(), missing)
	want(t, "Get of what was put with a done context", err, store.ErrNotFound)
}

func testUpdate(t *testing.T, s store.Store) {
	key, refusal := newKey(), errors.New("refused")
	err := store.Update(t.Context(), s, key, lasting, func(old []byte) ([]byte, error) {
		if old != nil {
			t.Errorf("a missing value is %q, want nil", old)
		}
		return nil, nil
	})
	want(t, "Update", err, nil)
	err = store.Update(t.Context(), s, key, lasting, func(old []byte) ([]byte, error) {
		if old == nil {
			t.Error("an empty value is nil")
		}
		return nil, refusal
	})
	want(t, "Update that is refused", err, refusal)
	interferences := 0
	err = store.Update(t.Context(), s, key, lasting, func(old []byte) ([]byte, error) {
		if interferences++; interferences == 1 {
			_, err := s.Take(t.Context(), key)
			want(t, "Take", err, nil)
		}
		return []byte("new"), nil
	})
	want(t, "Update with interference", err, nil)
	if interferences != 2 {
		t.Errorf("Update tried %d times, want 2", interferences)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

// Run runs all tests, each as a subtest with its own store from open. The stores may be
// views of one engine: the tests use unique keys. They wait a few seconds for entries to expire.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	for name, test := range Tests() {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Tests returns all tests by name.
func Tests() iter.Seq2[string, func(*testing.T, store.Store)] {
	return func(yield func(string, func(*testing.T, store.Store)) bool) {
		for _, tests := range [][]test{valuesTests, topicsTests, contractTests} {
			for _, test := range tests {
				if !yield(test.name, test.run) {
					return
				}
			}
		}
	}
}

type test struct {
	name string
	run  func(*testing.T, store.Store)
}

const (
	ttl      = 100 * time.Millisecond // of entries that should expire
	lasting  = time.Hour              // of entries that should not expire
	patience = 10 * time.Second       // for operations that should finish soon
)

// newKey returns a key that no other test, and no other run of this test, uses.
func newKey() string { return "storetest." + rand.Text() }

// want fails the test unless err is the expected error.
func want(t *testing.T, what string, err, expected error) {
	t.Helper()
	if !errors.Is(err, expected) {
		t.Fatalf("%s: error %v, want %v", what, err, expected)
	}
}

// eventually calls ask until it returns true.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	ticker := time.NewTicker(ttl / 4)
	defer ticker.Stop()
	for giveUp := time.Now().Add(patience); !ask(); <-ticker.C {
		if time.Now().After(giveUp) {
			t.Fatalf("%s has not happened for %v", what, patience)
		}
	}
}

// notEarly fails the test if an entry that was written at began has expired before its ttl.
// It allows for the clock of an engine to run a little faster while it is adjusted.
func notEarly(t *testing.T, began time.Time, ttl time.Duration) {
	t.Helper()
	if took := time.Since(began); took < ttl-ttl/50 {
		t.Fatalf("expired after %v, before its TTL of %v", took, ttl)
	}
}

// waitForExpiry waits until entries with a TTL of ttl have expired, however late.
func waitForExpiry() { <-time.After(ttl + 2*time.Second) }

// soon returns a context with a deadline, for operations that should finish soon.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// put puts a value, which must succeed.
func put(t *testing.T, s store.Store, key, value string, version uint64, ttl time.Duration) uint64 {
	t.Helper()
	next, err := s.Put(t.Context(), key, []byte(value), version, ttl)
	want(t, "Put", err, nil)
	if next == 0 || next == version {
		t.Fatalf("Put at version %d returned version %d", version, next)
	}
	return next
}

// check checks that a key has a value.
func check(t *testing.T, s store.Store, key, value string, version uint64) {
	t.Helper()
	got, gotVersion, err := s.Get(t.Context(), key)
	want(t, "Get", err, nil)
	if string(got) != value || gotVersion != version {
		t.Fatalf("Get returned %q at version %d, want %q at %d", got, gotVersion, value, version)
	}
}

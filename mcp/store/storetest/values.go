// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

var valuesTests = []test{
	{"ValuesMissing", testMissing},
	{"ValuesSwap", testSwap},
	{"ValuesTake", testTake},
	{"ValuesVersionsAreNotReused", testVersions},
	{"ValuesKeys", testKeys},
	{"ValuesOwnership", testValueOwnership},
	{"ValuesLarge", testLargeValue},
	{"ValuesExpire", testExpire},
	{"ValuesExpireUnseen", testExpireUnseen},
	{"ValuesTTLIsReplaced", testReplaceTTL},
	{"ValuesConcurrentUpdates", testConcurrentUpdates},
	{"ValuesConcurrentTakes", testConcurrentTakes},
}

func testMissing(t *testing.T, s store.Store) {
	key := newKey()
	_, _, err := s.Get(t.Context(), key)
	want(t, "Get of a missing key", err, store.ErrNotFound)
	_, err = s.Take(t.Context(), key)
	want(t, "Take of a missing key", err, store.ErrNotFound)
	_, err = s.Put(t.Context(), key, nil, 1, 0)
	want(t, "Put at a version of a missing key", err, store.ErrConflict)
}

func testSwap(t *testing.T, s store.Store) {
	key := newKey()
	first := put(t, s, key, "one", 0, lasting)
	check(t, s, key, "one", first)
	_, err := s.Put(t.Context(), key, []byte("other"), 0, lasting)
	want(t, "Put of a second new value", err, store.ErrConflict)
	second := put(t, s, key, "", first, 0)
	_, err = s.Put(t.Context(), key, []byte("other"), first, lasting)
	want(t, "Put at an old version", err, store.ErrConflict)
	check(t, s, key, "", second)
}

func testTake(t *testing.T, s store.Store) {
	key := newKey()
	put(t, s, key, "value", 0, lasting)
	got, err := s.Take(t.Context(), key)
	want(t, "Take", err, nil)
	if string(got) != "value" {
		t.Fatalf("Take returned %q", got)
	}
	_, err = s.Take(t.Context(), key)
	want(t, "second Take", err, store.ErrNotFound)
	_, _, err = s.Get(t.Context(), key)
	want(t, "Get after Take", err, store.ErrNotFound)
}

func testVersions(t *testing.T, s store.Store) {
	key := newKey()
	first := put(t, s, key, "same", 0, lasting)
	_, err := s.Take(t.Context(), key)
	want(t, "Take", err, nil)
	_, err = s.Put(t.Context(), key, nil, first, lasting)
	want(t, "Put at the version of a taken value", err, store.ErrConflict)
	if second := put(t, s, key, "same", 0, lasting); second == first {
		t.Fatalf("version %d was given out twice", first)
	}
}

// oddKeys returns different keys that a store could confuse or reject.
func oddKeys() []string {
	prefix := newKey()
	keys := []string{"a", "A", "a ", "a.b", "a.c", "a/b", "a>", "a.*", "a.>", "a:b", "%61", "\u00e4", "a\u0308", "\U0001f600", "a\x00", "a\x00b", "\n", "..", "."}
	for _, c := range []string{"k", "\x00"} {
		keys = append(keys, strings.Repeat(c, store.MaxKey-len(prefix)))
	}
	for i := range keys {
		keys[i] = prefix + keys[i]
	}
	return keys
}

func testKeys(t *testing.T, s store.Store) {
	keys := oddKeys()
	for i, key := range keys {
		put(t, s, key, strconv.Itoa(i), 0, lasting)
	}
	for i, key := range keys {
		got, err := s.Take(t.Context(), key)
		if err != nil || string(got) != strconv.Itoa(i) {
			t.Errorf("key %q has %q, %v, want %d", key, got, err, i)
		}
	}
}

// largest is the size of a value or record that is never too large.
const largest = 512 << 10

func testLargeValue(t *testing.T, s store.Store) {
	key, value := newKey(), strings.Repeat("v", largest)
	check(t, s, key, value, put(t, s, key, value, 0, lasting))
}

func testValueOwnership(t *testing.T, s store.Store) {
	key, value := newKey(), []byte("value")
	version, err := s.Put(t.Context(), key, value, 0, lasting)
	want(t, "Put", err, nil)
	value[0] = 'X'
	check(t, s, key, "value", version)
	got, _, err := s.Get(t.Context(), key)
	want(t, "Get", err, nil)
	got[0] = 'X'
	check(t, s, key, "value", version)
}

func testExpire(t *testing.T, s store.Store) {
	key := newKey()
	var version uint64
	for _, ttl := range []time.Duration{ttl, 1500 * time.Millisecond} {
		began := time.Now()
		version = put(t, s, key, "value", 0, ttl)
		eventually(t, "expiry of a value", func() bool {
			_, _, err := s.Get(t.Context(), key)
			return errors.Is(err, store.ErrNotFound)
		})
		notEarly(t, began, ttl)
	}
	_, err := s.Put(t.Context(), key, nil, version, lasting)
	want(t, "Put at the version of an expired value", err, store.ErrConflict)
	_, err = s.Take(t.Context(), key)
	want(t, "Take of an expired value", err, store.ErrNotFound)
	if again := put(t, s, key, "again", 0, lasting); again == version {
		t.Fatalf("version %d was given out again after its value had expired", version)
	}
}

// testExpireUnseen uses values that have expired without a Get noticing it, and one with
// the longest TTL.
func testExpireUnseen(t *testing.T, s store.Store) {
	kept, taken, swapped, created := newKey(), newKey(), newKey(), newKey()
	keptVersion := put(t, s, kept, "value", 0, math.MaxInt64)
	put(t, s, taken, "value", 0, ttl)
	version := put(t, s, swapped, "value", 0, ttl)
	put(t, s, created, "value", 0, ttl)
	waitForExpiry()
	_, err := s.Take(t.Context(), taken)
	want(t, "Take of an expired value", err, store.ErrNotFound)
	_, err = s.Put(t.Context(), swapped, nil, version, lasting)
	want(t, "Put at the version of an expired value", err, store.ErrConflict)
	put(t, s, created, "again", 0, lasting)
	check(t, s, kept, "value", keptVersion)
}

func testReplaceTTL(t *testing.T, s store.Store) {
	forever, longer, shorter := newKey(), newKey(), newKey()
	forever2 := put(t, s, forever, "value", put(t, s, forever, "value", 0, ttl), 0)
	longer2 := put(t, s, longer, "value", put(t, s, longer, "value", 0, ttl), lasting)
	put(t, s, shorter, "value", put(t, s, shorter, "value", 0, 0), ttl) // expires last
	eventually(t, "expiry of a value", func() bool {
		_, _, err := s.Get(t.Context(), shorter)
		return errors.Is(err, store.ErrNotFound)
	})
	check(t, s, forever, "value", forever2)
	check(t, s, longer, "value", longer2)
}

func testConcurrentUpdates(t *testing.T, s store.Store) {
	const workers, rounds = 4, 10
	key := newKey()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for range rounds {
				if err := store.Update(t.Context(), s, key, lasting, increment); err != nil {
					t.Errorf("Update: %v", err)
				}
			}
		})
	}
	group.Wait()
	got, err := s.Take(t.Context(), key)
	want(t, "Take", err, nil)
	if string(got) != strconv.Itoa(workers*rounds) {
		t.Fatalf("the counter is at %q, want %d", got, workers*rounds)
	}
}

func increment(old []byte) ([]byte, error) {
	if old == nil {
		old = []byte("0")
	}
	n, err := strconv.Atoi(string(old))
	if err != nil {
		return nil, fmt.Errorf("counter: %w", err)
	}
	return strconv.AppendInt(nil, int64(n)+1, 10), nil
}

func testConcurrentTakes(t *testing.T, s store.Store) {
	for range 10 {
		key := newKey()
		put(t, s, key, "value", 0, lasting)
		var winners atomic.Int32
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				_, err := s.Take(t.Context(), key)
				if err == nil {
					winners.Add(1)
				} else if !errors.Is(err, store.ErrNotFound) {
					t.Errorf("Take: %v", err)
				}
			})
		}
		group.Wait()
		if n := winners.Load(); n != 1 {
			t.Fatalf("%d callers took the value, want 1", n)
		}
	}
}

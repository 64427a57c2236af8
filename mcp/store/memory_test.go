// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package store_test

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.NewMemory(nil) })
}

// TestMemoryInBubble runs the same tests with fake time. A leftover goroutine fails them.
func TestMemoryInBubble(t *testing.T) {
	for name, test := range storetest.Tests() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, store.NewMemory(nil)) })
		})
	}
}

func TestMemoryUnderLoad(t *testing.T) {
	if failed := storetest.Disturb(t, store.NewMemory(nil), func() { pass(50 * time.Millisecond) }); failed > 0 {
		t.Errorf("%.2f %% of the steps failed", 100*failed)
	}
}

// pass lets fake time pass.
func pass(d time.Duration) { <-time.After(d) }

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: error %v, want %v", what, err, want)
	}
}

func TestMemoryValueExpiresOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := store.NewMemory(nil)
		_, err := m.Put(t.Context(), "key", nil, 0, time.Minute)
		wantError(t, "Put", err, nil)
		pass(time.Minute - 1)
		_, _, err = m.Get(t.Context(), "key")
		wantError(t, "Get before the deadline", err, nil)
		pass(1)
		_, _, err = m.Get(t.Context(), "key")
		wantError(t, "Get at the deadline", err, store.ErrNotFound)
	})
}

// TestMemoryBound fills a small store in every way, several times: writes are rejected at
// the limit, and values that are removed, replaced or expired make room.
func TestMemoryBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := store.NewMemory(&store.MemoryOptions{MaxBytes: 10_000})
		free := map[string]func(key string) error{
			"take": func(key string) error { _, err := m.Take(t.Context(), key); return err },
			"wait": func(string) error { return nil },
		}
		for range 3 {
			for how, empty := range free {
				keys := fill(t, m)
				if keys < 10 || keys > 100 {
					t.Fatalf("the store took %d keys", keys)
				}
				for i := range keys {
					wantError(t, how, empty(strconv.Itoa(i)), nil)
				}
				if how == "wait" {
					pass(time.Hour)
				}
			}
		}
	})
}

// fill adds keys until the store is full, and returns their number.
func fill(t *testing.T, m *store.Memory) int {
	t.Helper()
	for i := 0; ; i++ {
		key := strconv.Itoa(i)
		version, err := m.Put(t.Context(), key, make([]byte, 100), 0, 0)
		if err == nil {
			_, err = m.Put(t.Context(), key, make([]byte, 10), version, time.Hour)
		}
		if err != nil {
			wantError(t, "adding to a full store", err, store.ErrFull)
			return i
		}
	}
}

func TestMemoryTooLarge(t *testing.T) {
	m := store.NewMemory(nil)
	_, err := m.Put(t.Context(), "key", make([]byte, 1<<20+1), 0, 0)
	wantError(t, "Put", err, store.ErrTooLarge)
	wantError(t, "Publish", m.Publish(t.Context(), "key", make([]byte, 64<<10+1)), store.ErrTooLarge)
}

func TestMemoryOverflowIsReportedInPlace(t *testing.T) {
	m := store.NewMemory(nil)
	s, err := m.Subscribe(t.Context(), "topic")
	wantError(t, "Subscribe", err, nil)
	publish := func(message string) {
		wantError(t, "Publish", m.Publish(t.Context(), "topic", []byte(message)), nil)
	}
	expect := func(want string, wantErr error) {
		t.Helper()
		message, err := s.Next(t.Context())
		if string(message) != want || !errors.Is(err, wantErr) {
			t.Fatalf("Next returned %q, %v, want %q, %v", message, err, want, wantErr)
		}
	}
	for i := range 64 {
		publish(fmt.Sprint(i))
	}
	publish("lost")
	expect("0", nil)
	publish("lost too, or it would come before the report")
	for i := range 63 {
		expect(fmt.Sprint(i+1), nil)
	}
	expect("", store.ErrOverflow)
	publish("c")
	expect("c", nil)
	wantError(t, "Close", s.Close(), nil)
	expect("", store.ErrClosed)
}

// nearlyFull returns a store that has room for n more subscriptions.
func nearlyFull(t *testing.T, n int) *store.Memory {
	t.Helper()
	m := store.NewMemory(nil)
	for range 1<<16 - n {
		_, err := m.Subscribe(t.Context(), "others")
		wantError(t, "Subscribe", err, nil)
	}
	return m
}

func TestMemoryMaxSubscriptions(t *testing.T) {
	m := nearlyFull(t, 1)
	first, err := m.Subscribe(t.Context(), "topic")
	wantError(t, "Subscribe", err, nil)
	_, err = m.Subscribe(t.Context(), "other")
	wantError(t, "second Subscribe", err, store.ErrFull)
	wantError(t, "Close", first.Close(), nil)
	wantError(t, "second Close", first.Close(), nil)
	_, err = m.Subscribe(t.Context(), "other")
	wantError(t, "Subscribe after Close", err, nil)
}

// Closing a subscription more than once frees only one place.
func TestMemoryClosedTwice(t *testing.T) {
	m := nearlyFull(t, 2)
	var all []store.Subscription
	for range 2 {
		s, err := m.Subscribe(t.Context(), "topic")
		wantError(t, "Subscribe", err, nil)
		all = append(all, s)
	}
	wantError(t, "Close", all[0].Close(), nil)
	wantError(t, "second Close", all[0].Close(), nil)
	_, err := m.Subscribe(t.Context(), "topic")
	wantError(t, "Subscribe after Close", err, nil)
	_, err = m.Subscribe(t.Context(), "topic")
	wantError(t, "one more", err, store.ErrFull)
}

func TestNewMemoryPanicsOnNegativeOptions(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("did not panic")
		}
	}()
	store.NewMemory(&store.MemoryOptions{MaxBytes: -1})
}

// TestMemoryIdleCost checks that many idle keys cost little memory.
func TestMemoryIdleCost(t *testing.T) {
	const keys, limit = 50_000, 400
	m := store.NewMemory(nil)
	before := heapInUse()
	for i := range keys {
		if _, err := m.Put(t.Context(), fmt.Sprintf("session-%08d", i), []byte("12345678"), 0, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	cost := int(heapInUse()-before) / keys
	if cost > limit {
		t.Errorf("an idle key costs %d bytes, want at most %d", cost, limit)
	}
	t.Logf("an idle key costs %d bytes", cost)
	runtime.KeepAlive(m)
}

func heapInUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func BenchmarkMemory(b *testing.B) {
	storetest.Bench(b, store.NewMemory(&store.MemoryOptions{MaxBytes: 1 << 30}))
}

func BenchmarkMemoryUpdate(b *testing.B) {
	m := store.NewMemory(nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			err := store.Update(b.Context(), m, "counter", time.Minute, func([]byte) ([]byte, error) { return []byte("1"), nil })
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkMemoryPublish(b *testing.B) {
	m := store.NewMemory(nil)
	for range 100 {
		if _, err := m.Subscribe(b.Context(), "topic"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Publish(b.Context(), "topic", []byte("changed")); err != nil {
			b.Fatal(err)
		}
	}
}

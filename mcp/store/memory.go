// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/made"
)

// MemoryOptions configure a [Memory]. Nil means the zero MemoryOptions. A zero field means the
// default.
type MemoryOptions struct {
	// MaxBytes bounds the memory of values: their keys, their data and a fixed overhead for
	// each. The default is 64 MiB.
	MaxBytes int
}

// maxValue bounds a single value. Larger data is stored in parts.
const maxValue = 1 << 20

// Memory is a [Store] in the memory of one process. It starts no goroutines, so there is
// nothing to close: expired entries are removed by later calls, a few at a time. It must be
// created by [NewMemory].
type Memory struct {
	maxBytes int
	topics   topics
	start    time.Time

	mu       sync.Mutex
	last     uint64 // the last version that was assigned
	bytes    int    // as counted for MemoryOptions.MaxBytes
	values   map[string]*memoryValue
	expiries expiryHeap
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store. opts may be nil. NewMemory panics if an option is negative.
func NewMemory(opts *MemoryOptions) *Memory {
	m := &Memory{start: time.Now(), values: map[string]*memoryValue{}, maxBytes: 64 << 20}
	if opts != nil {
		m.maxBytes = cmp.Or(opts.MaxBytes, m.maxBytes)
	}
	if m.maxBytes < 0 {
		panic(fmt.Sprintf("store: NewMemory with a negative option: %+v", *opts))
	}
	return m
}

// mustBeMade panics unless the Memory was created by NewMemory.
func (m *Memory) mustBeMade() {
	made.Check(m != nil && m.values != nil, "store: a Memory", "NewMemory")
}

// memoryValue is a value with its key. An idle value costs its own size, a slot in the map
// and, if it expires, a slot in the heap: together about overhead.
type memoryValue struct {
	expiry

	value   []byte
	version uint64
}

// overhead is counted for a value in addition to its key and data.
const overhead = 160

// Get returns a copy of a value; see [Values].
func (m *Memory) Get(ctx context.Context, key string) (value []byte, version uint64, err error) {
	now, err := m.startOperation(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	defer m.mu.Unlock()
	v := m.value(key, now)
	if v == nil {
		return nil, 0, ErrNotFound
	}
	return bytes.Clone(v.value), v.version, nil
}

// Put replaces a value; see [Values].
func (m *Memory) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if err := m.checkData(len(value), ttl); err != nil {
		return 0, err
	}
	now, err := m.startOperation(ctx, key)
	if err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	v := m.value(key, now)
	if v == nil && version != 0 || v != nil && v.version != version {
		return 0, ErrConflict
	}
	growth := len(value)
	if v == nil {
		growth += overhead + len(key)
	} else {
		growth -= len(v.value)
	}
	if err := m.reserve(growth, now); err != nil {
		return 0, err
	}
	if v == nil {
		v = &memoryValue{expiry: expiry{key: strings.Clone(key)}}
		m.values[v.key] = v
	}
	m.last++
	v.value, v.version = bytes.Clone(value), m.last
	m.expiries.set(v, deadline(now, ttl))
	return v.version, nil
}

// Take removes a value; see [Values].
func (m *Memory) Take(ctx context.Context, key string) ([]byte, error) {
	now, err := m.startOperation(ctx, key)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	v := m.value(key, now)
	if v == nil {
		return nil, ErrNotFound
	}
	m.remove(v)
	return v.value, nil // m no longer refers to it
}

// startOperation starts every method on values. If it succeeds, it leaves m locked and
// returns the time.
func (m *Memory) startOperation(ctx context.Context, key string) (now time.Duration, err error) {
	m.mustBeMade()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := CheckKey(key); err != nil {
		return 0, err
	}
	m.mu.Lock()
	now = time.Since(m.start)
	m.sweep(now, sweepSome)
	return now, nil
}

func (m *Memory) checkData(size int, ttl time.Duration) error {
	m.mustBeMade()
	if ttl < 0 {
		return fmt.Errorf("%w: negative TTL %v", ErrInvalid, ttl)
	}
	if size > maxValue {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, maxValue)
	}
	return nil
}

// value returns the value of a key unless it has expired.
func (m *Memory) value(key string, now time.Duration) *memoryValue {
	v := m.values[key]
	if v == nil {
		return nil
	}
	if v.over(now) {
		m.remove(v)
		return nil
	}
	return v
}

// reserve accounts for more memory or, if growth is negative, for less.
func (m *Memory) reserve(growth int, now time.Duration) error {
	if growth > 0 && m.bytes+growth > m.maxBytes {
		m.sweep(now, sweepAll)
		if m.bytes+growth > m.maxBytes {
			return ErrFull
		}
	}
	m.bytes += growth
	return nil
}

// The number of expired entries that one call removes: enough to keep up with calls that
// add one each, and few enough that no call takes long.
const (
	sweepSome = 4
	sweepAll  = math.MaxInt
)

func (m *Memory) sweep(now time.Duration, most int) {
	for range most {
		e := m.expiries.first()
		if e == nil || !e.over(now) {
			return
		}
		m.remove(e)
	}
}

// remove removes a value.
func (m *Memory) remove(v *memoryValue) {
	m.expiries.set(v, never)
	delete(m.values, v.key)
	m.bytes -= overhead + len(v.key) + len(v.value)
}

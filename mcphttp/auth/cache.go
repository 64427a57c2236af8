// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/lru"
)

// A digest is the hash of a secret. Secrets are stored and looked up by digest, so that the
// time of a lookup reveals nothing about similar secrets.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// A cache holds values until they expire. If it is full, the least recently used value is
// evicted. A nil cache holds nothing.
type cache[V any] struct {
	mu      sync.Mutex
	entries *lru.Map[digest, cached[V]]
}

type cached[V any] struct {
	value V
	until time.Time
}

// cacheSize is the maximum number of tokens in a cache.
const cacheSize = 4096

// cacheFor returns a new cache, or nil if age is negative.
func cacheFor[V any](age time.Duration) *cache[V] {
	if age < 0 {
		return nil
	}
	return newCache[V](cacheSize)
}

func newCache[V any](size int) *cache[V] {
	return &cache[V]{entries: lru.New[digest, cached[V]](size)}
}

func (c *cache[V]) get(key digest, now time.Time) (value V, ok bool) {
	if c == nil {
		return value, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries.Get(key)
	if ok && !now.Before(e.until) {
		c.entries.Delete(key)
		return value, false
	}
	return e.value, ok
}

func (c *cache[V]) put(key digest, value V, until time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Put(key, cached[V]{value, until})
}

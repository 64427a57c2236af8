// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/lru"
)

// digest stands for a secret, so that none is kept: it is found by its hash, and how
// long that takes tells nothing about secrets that are similar.
type digest [sha256.Size]byte

// digestOf copies most secrets to its stack, where they cost no allocation.
func digestOf(secret string) digest {
	var buf [2048]byte
	return sha256.Sum256(append(buf[:0], secret...))
}

// cache keeps values for some time, at most max of them: the one used longest ago
// makes room. A nil cache keeps nothing.
type cache[V any] struct {
	mu      sync.Mutex
	entries *lru.Map[digest, cached[V]]
}

type cached[V any] struct {
	value V
	until time.Time
}

// newCache returns nil if size is negative.
func newCache[V any](size int) *cache[V] {
	if size < 0 {
		return nil
	}
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

// flights lets those who ask for the same at once share one answer.
type flights[V any] struct {
	mu      sync.Mutex
	running map[digest]*flight[V]
}

type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// do calls fn, on a context of its own, or waits for the call that is on its way. Who
// asked first may go without ending the call for the others.
func (f *flights[V]) do(ctx context.Context, key digest, fn func(context.Context) (V, error)) (V, error) {
	f.mu.Lock()
	c := f.running[key]
	if c == nil {
		c = &flight[V]{done: make(chan struct{})}
		if f.running == nil {
			f.running = map[digest]*flight[V]{}
		}
		f.running[key] = c
		go f.fly(context.WithoutCancel(ctx), key, c, fn)
	}
	f.mu.Unlock()
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		var none V
		return none, context.Cause(ctx)
	}
}

func (f *flights[V]) fly(ctx context.Context, key digest, c *flight[V], fn func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil { // of somebody's RoundTripper
			c.err = fmt.Errorf("auth: panic: %v", v)
		}
		f.mu.Lock()
		delete(f.running, key)
		f.mu.Unlock()
		close(c.done)
	}()
	c.value, c.err = fn(ctx)
}

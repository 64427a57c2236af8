// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"crypto/sha256"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// TokenBucketOptions configure a [TokenBucket]. Nil means the zero
// TokenBucketOptions.
type TokenBucketOptions struct {
	// Burst is how many may come at once after a pause. 0 means as many as come in
	// the whole time.
	Burst int
	// MaxKeys is how many keys are remembered at most. A key whose bucket is full again
	// need not be. If there are more, those that have taken the least are forgotten, and
	// keys that are not known begin with as little as these had left: to be forgotten is
	// no gain. 0 means 65536.
	MaxKeys int
}

// A TokenBucket is a [Limiter] in the memory of one process. It is safe for
// concurrent use.
type TokenBucket struct {
	each  time.Duration // in which one comes back
	depth time.Duration // in which an empty bucket is full
	keys  int

	mu    sync.Mutex
	full  map[string]time.Time // when the bucket of a key is full again
	floor time.Time            // when those of keys are that are not known
}

// NewTokenBucket makes a limiter that lets through n requests in each span of time,
// evenly spread but for bursts; opts may be nil. It panics if n or the time is not
// positive.
func NewTokenBucket(n int, in time.Duration, opts *TokenBucketOptions) *TokenBucket {
	mustBePositive("NewTokenBucket: the number", n)
	mustBePositive("NewTokenBucket: the time", in)
	b := &TokenBucket{each: max(1, in/time.Duration(n)), keys: 1 << 16, full: map[string]time.Time{}}
	burst := n
	if opts != nil && opts.Burst > 0 {
		burst = opts.Burst
	}
	if opts != nil && opts.MaxKeys > 0 {
		b.keys = opts.MaxKeys
	}
	b.depth = b.each * time.Duration(min(int64(burst), math.MaxInt64/2/int64(b.each)))
	return b
}

// Take implements [Limiter]. It returns no error.
func (b *TokenBucket) Take(_ context.Context, key string) (time.Duration, error) {
	key = bounded(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	full, known := b.full[key]
	if !known {
		full = b.floor
	}
	if full.Before(now) {
		full = now
	}
	full = full.Add(b.each)
	if wait := full.Sub(now) - b.depth; wait > 0 {
		return wait, nil
	}
	if !known && len(b.full) >= b.keys {
		b.makeRoomLocked(now)
	}
	b.full[key] = full
	return 0, nil
}

// makeRoomLocked forgets the keys whose buckets are full, and a sixteenth of all of those
// that have taken the least, so that the next keys find room without a search.
func (b *TokenBucket) makeRoomLocked(now time.Time) {
	maps.DeleteFunc(b.full, func(_ string, full time.Time) bool { return !full.After(now) })
	excess := len(b.full) - (b.keys - max(1, b.keys/16))
	if excess <= 0 {
		return
	}
	times := slices.SortedFunc(maps.Values(b.full), time.Time.Compare)
	b.floor = times[excess-1]
	maps.DeleteFunc(b.full, func(_ string, full time.Time) bool { return !full.After(b.floor) })
}

// maxKey is how long a key may be that is remembered as it is.
const maxKey = 128

// bounded keeps what clients chose from filling the memory.
func bounded(key string) string {
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return string(sum[:])
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"container/list"
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// TokenBucketOptions configure a [TokenBucket]. Nil means the zero
// TokenBucketOptions.
type TokenBucketOptions struct {
	// Burst is how many may come at once after a pause. 0 means as many as come in
	// the whole time.
	Burst int
	// MaxKeys is how many keys are remembered; the one that was used longest ago
	// makes room, and begins with a full bucket when it comes again. It is best
	// more than the callers that there are. 0 means 65536.
	MaxKeys int
}

// A TokenBucket is a [Limiter] in the memory of one process. It is safe for
// concurrent use.
type TokenBucket struct {
	every rate.Limit
	burst int
	max   int

	mu     sync.Mutex
	keys   map[string]*list.Element // of *bucket
	recent list.List                // the one used last in front
}

type bucket struct {
	key    string
	tokens *rate.Limiter
}

// NewTokenBucket makes a limiter that lets through n requests in each span of time,
// evenly spread but for bursts; opts may be nil. It panics if n or the time is not
// positive.
func NewTokenBucket(n int, in time.Duration, opts *TokenBucketOptions) *TokenBucket {
	mustBePositive("NewTokenBucket: the number", n)
	mustBePositive("NewTokenBucket: the time", in)
	b := &TokenBucket{every: rate.Limit(float64(n) / in.Seconds()), burst: n, max: 1 << 16, keys: map[string]*list.Element{}}
	if opts != nil && opts.Burst > 0 {
		b.burst = opts.Burst
	}
	if opts != nil && opts.MaxKeys > 0 {
		b.max = opts.MaxKeys
	}
	return b
}

// Take implements [Limiter]. It returns no error.
func (b *TokenBucket) Take(_ context.Context, key string) (time.Duration, error) {
	key = bounded(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.keys[key]
	if at == nil {
		at = b.add(key)
	}
	b.recent.MoveToFront(at)
	tokens := at.Value.(*bucket).tokens
	now := time.Now()
	if tokens.AllowN(now, 1) {
		return 0, nil
	}
	missing := 1 - tokens.TokensAt(now)
	return max(time.Nanosecond, time.Duration(missing/float64(b.every)*float64(time.Second))), nil
}

func (b *TokenBucket) add(key string) *list.Element {
	if b.recent.Len() >= b.max {
		oldest := b.recent.Back()
		delete(b.keys, oldest.Value.(*bucket).key)
		b.recent.Remove(oldest)
	}
	at := b.recent.PushFront(&bucket{key, rate.NewLimiter(b.every, b.burst)})
	b.keys[key] = at
	return at
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

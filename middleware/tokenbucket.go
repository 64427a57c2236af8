// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/go-psi/psi/internal/lru"
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

	mu      sync.Mutex
	buckets *lru.Map[string, *rate.Limiter]
}

// NewTokenBucket makes a limiter that lets through n requests in each span of time,
// evenly spread but for bursts; opts may be nil. It panics if n or the time is not
// positive.
func NewTokenBucket(n int, in time.Duration, opts *TokenBucketOptions) *TokenBucket {
	mustBePositive("NewTokenBucket: the number", n)
	mustBePositive("NewTokenBucket: the time", in)
	b := &TokenBucket{every: rate.Limit(float64(n) / in.Seconds()), burst: n}
	keys := 1 << 16
	if opts != nil && opts.Burst > 0 {
		b.burst = opts.Burst
	}
	if opts != nil && opts.MaxKeys > 0 {
		keys = opts.MaxKeys
	}
	b.buckets = lru.New[string, *rate.Limiter](keys)
	return b
}

// Take implements [Limiter]. It returns no error.
func (b *TokenBucket) Take(_ context.Context, key string) (time.Duration, error) {
	key = bounded(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	tokens, ok := b.buckets.Get(key)
	if !ok {
		tokens = rate.NewLimiter(b.every, b.burst)
		b.buckets.Put(key, tokens)
	}
	now := time.Now()
	if tokens.AllowN(now, 1) {
		return 0, nil
	}
	missing := 1 - tokens.TokensAt(now)
	return max(time.Nanosecond, time.Duration(missing/float64(b.every)*float64(time.Second))), nil
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

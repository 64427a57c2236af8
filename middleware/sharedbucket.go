// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/lru"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp/store"
)

// SharedBucketOptions configure a [SharedBucket]. Nil means the zero SharedBucketOptions.
type SharedBucketOptions struct {
	// Name separates limits that share a store. All replicas of a limit must use the same
	// name.
	Name string
	// Burst is the number of requests that may arrive at once after an idle period. 0 means
	// the number of requests per period.
	Burst int
}

// A SharedBucket is a [Limiter] whose tokens are in a store that all replicas share. It
// must be created by [NewSharedBucket] and is safe for concurrent use.
//
// Each replica takes tokens in lots, which are a small part of the burst but at least one
// token, and serves requests from its lot without accessing the store. This makes the limit
// approximate, in one direction only: tokens that a replica does not use within the time it
// takes to refill its lot are lost, so a burst may lack up to one lot for each other replica.
// No more requests pass than the limit allows, apart from differences between the clocks of the
// replicas: a clock that is ahead by d adds the tokens of d, once.
//
// Each lot costs a read and a write of the store. While a key has no tokens left, requests
// cost nothing, because the replica remembers when the next token is available. If the
// store fails, the requests that need it fail with its error.
type SharedBucket struct {
	values store.Values
	name   string
	each   time.Duration // time to refill one token
	depth  time.Duration // time to refill an empty bucket
	lot    int

	mu   sync.Mutex
	keys *lru.Map[string, *lot]
}

// A lot holds the tokens that this process has taken for a key. It is locked while more
// tokens are taken, so that concurrent requests for one key take one lot. If every request
// asked the store, it would be on the path of every call. A share for each replica was
// rejected: it is wrong whenever the balancer is uneven.
type lot struct {
	turn chan struct{} // holds an element unless the lot is locked

	tokens  int
	expires time.Time // when the tokens expire
	empty   time.Time // until when the store has no tokens
}

// NewSharedBucket returns a limiter that allows n requests in a period of length in, for all
// replicas together, evenly spread except for bursts. opts may be nil. NewSharedBucket
// panics if values is nil, if n or in is not positive, or if the burst is negative.
func NewSharedBucket(values store.Values, n int, in time.Duration, opts *SharedBucketOptions) *SharedBucket {
	var o SharedBucketOptions
	if opts != nil {
		o = *opts
	}
	if values == nil {
		panic("middleware.NewSharedBucket: the values must not be nil")
	}
	mustBePositive("NewSharedBucket: the number", n)
	mustBePositive("NewSharedBucket: the time", in)
	if o.Burst < 0 {
		panic("middleware.NewSharedBucket: the burst is negative")
	}
	b := &SharedBucket{values: values, name: o.Name, each: max(1, in/time.Duration(n))}
	burst := n
	if o.Burst > 0 {
		burst = o.Burst
	}
	burst = int(min(int64(burst), math.MaxInt64/2/int64(b.each)))
	b.depth = b.each * time.Duration(burst)
	b.lot = min(max(1, burst/16), burst)
	b.keys = lru.New[string, *lot](maxKeys) // the tokens of a forgotten key are lost
	return b
}

// Take implements [Limiter].
func (b *SharedBucket) Take(ctx context.Context, key string) (retryAfter time.Duration, err error) {
	made.Check(b != nil && b.each > 0, "middleware: a SharedBucket", "NewSharedBucket")
	l := b.lotOf(boundKey(key))
	select {
	case <-l.turn:
		defer func() { l.turn <- struct{}{} }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	now := time.Now()
	switch {
	case l.tokens > 0 && now.Before(l.expires):
		l.tokens--
		return 0, nil
	case now.Before(l.empty):
		return l.empty.Sub(now), nil
	}
	taken, wait, err := b.takeLot(ctx, key, now)
	if err != nil || taken == 0 {
		l.empty = now.Add(wait)
		return wait, err
	}
	l.tokens, l.expires = taken-1, now.Add(b.each*time.Duration(b.lot))
	return 0, nil
}

func (b *SharedBucket) lotOf(key string) *lot {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.keys.Get(key)
	if !ok {
		l = &lot{turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		b.keys.Put(key, l)
	}
	return l
}

var errNoTokens = errors.New("middleware: no tokens")

// takeLot takes up to a lot of tokens from the store. The stored value is a time and the
// tokens in the bucket at that time, expressed as the time it took to refill them. If there
// is no token, takeLot returns how long to wait for one.
func (b *SharedBucket) takeLot(ctx context.Context, key string, now time.Time) (taken int, wait time.Duration, err error) {
	sum := sha256.Sum256([]byte(b.name + "\x00" + key))
	name := "psi/limit/" + hex.EncodeToString(sum[:16])
	err = store.Update(ctx, b.values, name, b.depth+time.Second, func(old []byte) ([]byte, error) {
		room := b.depth
		at := now.UnixNano()
		if len(old) == 16 {
			last := int64(binary.BigEndian.Uint64(old))
			at = max(at, last) // no refill while the clock of another replica is ahead
			refilled := time.Duration(at - last)
			room = min(room, time.Duration(binary.BigEndian.Uint64(old[8:]))+refilled)
		}
		if room < b.each {
			wait = b.each - room
			return nil, errNoTokens
		}
		taken = int(min(int64(b.lot), int64(room/b.each)))
		room -= b.each * time.Duration(taken)
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(at)), uint64(room)), nil
	})
	if errors.Is(err, errNoTokens) {
		return 0, wait, nil
	}
	if err != nil {
		return 0, 0, err
	}
	return taken, 0, nil
}

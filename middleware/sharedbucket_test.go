// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/middleware"
)

// meteredValues counts the operations that reach a store, and can fail.
type meteredValues struct {
	store.Values

	steps atomic.Int32
	err   error
}

func (c *meteredValues) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	c.steps.Add(1)
	if c.err != nil {
		return nil, 0, c.err
	}
	return c.Values.Get(ctx, key)
}

// passes returns how many of n requests pass when they are spread over the replicas.
func passes(t *testing.T, n int, replicas ...*middleware.SharedBucket) (passed int) {
	t.Helper()
	for i := range n {
		wait, err := replicas[i%len(replicas)].Take(t.Context(), "key")
		if err != nil || wait < 0 {
			t.Fatalf("Take: %v, %v", wait, err)
		}
		if wait == 0 {
			passed++
		}
	}
	return passed
}

// The tokens that a replica has taken expire when they could have been refilled: an idle
// replica does not add its old lot to a burst elsewhere.
func TestSharedBucketLotExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		values := store.NewMemory(nil)
		idle := middleware.NewSharedBucket(values, 160, time.Minute, nil)
		busy := middleware.NewSharedBucket(values, 160, time.Minute, nil)
		if n := passes(t, 1, idle); n != 1 {
			t.Fatal("the first request was refused")
		}
		<-time.After(time.Minute)
		if n := passes(t, 1000, busy); n != 160 {
			t.Errorf("%d requests passed at one replica, want 160", n)
		}
		if n := passes(t, 100, idle); n != 0 {
			t.Errorf("%d further requests passed with a lot of a minute ago", n)
		}
	})
}

// Replicas share a limit, whichever of them receives the requests.
func TestSharedBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &meteredValues{Values: store.NewMemory(nil)}
		replica := func() *middleware.SharedBucket {
			return middleware.NewSharedBucket(shared, 160, time.Minute, nil)
		}
		one, two, three := replica(), replica(), replica()
		if n := passes(t, 1000, one, two, three); n != 160 {
			t.Errorf("%d of 1000 requests passed at once, want 160", n)
		}
		if n := shared.steps.Load(); n > 20 {
			t.Errorf("1000 requests took %d steps of the store, want 16 for the lots and 3 for the refusals", n)
		}
		<-time.After(time.Minute)
		if n := passes(t, 1000, two); n != 160 {
			t.Errorf("%d requests passed at one replica after a minute, want 160", n)
		}
	})
}

// The number of requests that pass never exceeds the limit. Unused lots are lost.
func TestSharedBucketError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		values := store.NewMemory(nil)
		opts := &middleware.SharedBucketOptions{Burst: 80}
		var replicas []*middleware.SharedBucket
		for range 3 {
			replicas = append(replicas, middleware.NewSharedBucket(values, 10, time.Second, opts))
		}
		passes(t, 3, replicas...) // each has taken a lot of 5 and used one of it
		if n := passes(t, 100, replicas[0]); n != 69 {
			t.Errorf("%d requests passed at the first replica, want 69: 4 of its lot, and 65 that the others have left", n)
		}
		passed := 72
		for range 100 {
			<-time.After(100 * time.Millisecond)
			passed += passes(t, 10, replicas...)
		}
		if passed > 180 || passed < 160 {
			t.Errorf("%d requests passed in 10 s, want 180 at most, and not much less", passed)
		}
	})
}

func TestSharedBucketSaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := middleware.NewSharedBucket(store.NewMemory(nil), 1, time.Minute, nil)
		passes(t, 1, b)
		<-time.After(10 * time.Second)
		if wait, err := b.Take(t.Context(), "key"); wait != 50*time.Second || err != nil {
			t.Errorf("Take: %v, %v, want to wait for 50s", wait, err)
		}
		if wait, err := b.Take(t.Context(), "other"); wait != 0 || err != nil {
			t.Errorf("Take of another key: %v, %v", wait, err)
		}
	})
}

func TestSharedBucketConcurrently(t *testing.T) {
	values, passed := store.NewMemory(nil), atomic.Int32{}
	var group sync.WaitGroup
	for range 4 {
		b := middleware.NewSharedBucket(values, 100, time.Hour, nil)
		for range 4 {
			group.Go(func() {
				for range 50 {
					if wait, err := b.Take(t.Context(), "key"); wait == 0 && err == nil {
						passed.Add(1)
					}
				}
			})
		}
	}
	group.Wait()
	if n := passed.Load(); n != 100 {
		t.Errorf("%d requests passed, want 100", n)
	}
}

func TestSharedBucketWithoutStore(t *testing.T) {
	broken := &meteredValues{Values: store.NewMemory(nil), err: errors.New("broken")}
	b := middleware.NewSharedBucket(broken, 32, time.Minute, nil)
	if _, err := b.Take(t.Context(), "key"); !errors.Is(err, broken.err) {
		t.Errorf("Take: error %v, want that of the store", err)
	}
	broken.err = nil
	if wait, err := b.Take(t.Context(), "key"); wait != 0 || err != nil {
		t.Errorf("Take when the store works again: %v, %v", wait, err)
	}
	broken.err = errors.New("broken")
	if wait, err := b.Take(t.Context(), "key"); wait != 0 || err != nil {
		t.Errorf("Take from a lot while the store is broken: %v, %v", wait, err)
	}
}

// A burst that covers more time than a duration can hold does not overflow.
func TestSharedBucketLargeBurst(t *testing.T) {
	opts := &middleware.SharedBucketOptions{Burst: 4000} // takes 456 years to refill
	b := middleware.NewSharedBucket(store.NewMemory(nil), 1, 1000*time.Hour, opts)
	for i := range 100 {
		if wait, err := b.Take(t.Context(), "k"); wait != 0 || err != nil {
			t.Fatalf("request %d: %v, %v", i, wait, err)
		}
	}
}

// A lot is a sixteenth of the burst, but at least one token.
func TestSharedBucketLot(t *testing.T) {
	for burst, want := range map[int]int32{1: 1, 15: 15, 31: 31, 32: 16, 160: 16} {
		shared := &meteredValues{Values: store.NewMemory(nil)}
		bucket := middleware.NewSharedBucket(shared, 1, time.Hour, &middleware.SharedBucketOptions{Burst: burst})
		if n := passes(t, burst, bucket); n != burst {
			t.Errorf("%d of %d requests passed", n, burst)
		}
		if n := shared.steps.Load(); n != want {
			t.Errorf("%d requests took %d steps of the store, want %d", burst, n, want)
		}
	}
}

// aheadValues is a store as used by a replica whose clock is an hour ahead: the times in
// its values, which are their first eight bytes, are an hour later.
type aheadValues struct{ store.Values }

func (a aheadValues) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	value, version, err := a.Values.Get(ctx, key)
	return shifted(value, -time.Hour), version, err
}

func (a aheadValues) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	return a.Values.Put(ctx, key, shifted(value, time.Hour), version, ttl)
}

func shifted(value []byte, by time.Duration) []byte {
	if len(value) < 8 {
		return value
	}
	at := binary.BigEndian.Uint64(value) + uint64(by)
	return append(binary.BigEndian.AppendUint64(nil, at), value[8:]...)
}

// If the clock of one replica is ahead, the other replicas get the tokens that it leaves.
// Together, they do not exceed the limit.
func TestSharedBucketClockAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		ahead := middleware.NewSharedBucket(aheadValues{shared}, 10, 10*time.Second, nil)
		right := middleware.NewSharedBucket(shared, 10, 10*time.Second, nil)
		passes(t, 1, ahead)
		if n := passes(t, 20, right); n != 9 {
			t.Errorf("%d requests pass beside a clock that is ahead, want 9", n)
		}
		if wait, err := right.Take(t.Context(), "key"); err != nil || wait <= 0 || wait > time.Second {
			t.Errorf("without tokens: %v, %v", wait, err)
		}
		var passed [2]int
		for range 60 {
			<-time.After(time.Second)
			passed[0] += passes(t, 1, ahead)
			<-time.After(time.Second)
			passed[1] += passes(t, 2, right)
		}
		if passed[0] < 50 || passed[1] < 50 || passed[0]+passed[1] > 121 {
			t.Errorf("%d requests pass in two minutes at one a second, want 50 to 60 each", passed)
		}
	})
}

// A clock that was ahead blocks requests no longer than a full bucket takes to refill.
func TestSharedBucketClockWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		passes(t, 1, middleware.NewSharedBucket(aheadValues{shared}, 10, 10*time.Second, nil))
		right := middleware.NewSharedBucket(shared, 10, 10*time.Second, nil)
		passes(t, 9, right)
		<-time.After(12 * time.Second)
		if n := passes(t, 10, right); n != 10 {
			t.Errorf("%d requests pass when that clock is right again, want 10", n)
		}
	})
}

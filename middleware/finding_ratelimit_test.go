// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// allowed returns how many of a number of requests under a key pass at once.
func allowed(t *testing.T, b *middleware.TokenBucket, key string, requests int) (passed int) {
	t.Helper()
	for range requests {
		if after, err := b.Take(t.Context(), key); err != nil {
			t.Fatal(err)
		} else if after == 0 {
			passed++
		}
	}
	return passed
}

// A caller that makes the bucket forget its key by using others gains nothing, and takes
// hardly anything from new callers.
func TestFindingS25EvictionForgivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := middleware.NewTokenBucket(60, time.Hour, &middleware.TokenBucketOptions{MaxKeys: 64})
		if n := allowed(t, b, "mallory", 100); n != 60 {
			t.Fatalf("%d passed, want 60", n)
		}
		if n := allowed(t, b, "busy", 30); n != 30 {
			t.Fatalf("%d passed, want 30", n)
		}
		for i := range 640 {
			allowed(t, b, fmt.Sprint("bogus ", i), 1)
		}
		if n := allowed(t, b, "mallory", 100); n != 0 {
			t.Errorf("%d passed that had none left", n)
		}
		if n := allowed(t, b, "busy", 100); n > 30 {
			t.Errorf("%d passed that had 30 left", n)
		}
		if n := allowed(t, b, "new", 100); n < 40 {
			t.Errorf("a new caller has %d, want about 50", n)
		}
		<-time.After(time.Hour)
		for _, key := range []string{"mallory", "busy", "new", "newer"} {
			if n := allowed(t, b, key, 100); n != 60 {
				t.Errorf("%s: %d passed after an hour, want 60", key, n)
			}
		}
	})
}

// Keys with full buckets make room first.
func TestFindingS25FullBucketsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := middleware.NewTokenBucket(60, time.Minute, &middleware.TokenBucketOptions{MaxKeys: 64})
		allowed(t, b, "mallory", 60)
		for i := range 10_000 {
			allowed(t, b, fmt.Sprint("bogus ", i), 1)
			<-time.After(20 * time.Millisecond) // a bucket is full again after a second
			if i%25 == 0 {
				allowed(t, b, "mallory", 60)
			}
		}
		if n := allowed(t, b, "new", 100); n != 60 {
			t.Errorf("a new caller has %d, want 60", n)
		}
		if n := allowed(t, b, "mallory", 100); n > 1 {
			t.Errorf("%d passed that had at most one left", n)
		}
	})
}

// A large burst over a long period does not overflow.
func TestFindingS25LargeBurst(t *testing.T) {
	b := middleware.NewTokenBucket(1, 1000*time.Hour, &middleware.TokenBucketOptions{Burst: math.MaxInt})
	if n := allowed(t, b, "k", 100); n != 100 {
		t.Errorf("%d passed, want 100", n)
	}
}

// limits counts what is taken from each key.
type limits map[string]int

func (l limits) Take(_ context.Context, key string) (time.Duration, error) {
	l[key]++
	return 0, nil
}

// Unknown tools and methods share one key. Known ones have their own, from the first call
// on.
func TestFindingS25UnknownToolsShareAKey(t *testing.T) {
	for name, listed := range map[string]bool{"first called": false, "first listed": true} {
		t.Run(name, func(t *testing.T) {
			taken := limits{}
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Use(middleware.RateLimit(middleware.ByAll(middleware.ByPrincipal, middleware.ByTool), taken))
			mux.Tool("t", says(""))
			caller := &mcp.Principal{Subject: "mallory"}
			if listed {
				if _, err := mux.ServeMCP(t.Context(), as(caller, mcptest.NewRequest(mcp.MethodListTools, nil))); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 1000 {
				_, err := mux.ServeMCP(t.Context(), as(caller, call(fmt.Sprint("bogus ", i))))
				wantCode(t, err, mcp.CodeInvalidParams)
				_, err = mux.ServeMCP(t.Context(), as(caller, mcptest.NewRequest(fmt.Sprint("bogus/", i), nil)))
				wantCode(t, err, mcp.CodeMethodNotFound)
			}
			for range 3 {
				if _, err := mux.ServeMCP(t.Context(), as(caller, call("t"))); err != nil {
					t.Fatal(err)
				}
			}
			want := 2 // unknown tools, and t
			if listed {
				want = 3
			}
			if len(taken) != want {
				t.Errorf("%d keys, want %d: %v", len(taken), want, taken)
			}
			key := middleware.ByAll(middleware.ByPrincipal, middleware.ByTool)(t.Context(), as(caller, call("t")))
			if taken[key] != 3 {
				t.Errorf("t was counted %d times, want 3: %v", taken[key], taken)
			}
		})
	}
}

// The limit of a tool includes its first calls, even concurrent ones.
func TestFindingS25FirstCallsOfATool(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.RateLimit(middleware.ByTool, middleware.NewTokenBucket(2, time.Hour, nil)))
	mux.Tool("t", says(""))
	passed := 0
	for range 10 {
		if _, err := mux.ServeMCP(t.Context(), call("t")); err == nil {
			passed++
		}
	}
	if passed != 2 {
		t.Errorf("%d calls passed, want 2", passed)
	}
}

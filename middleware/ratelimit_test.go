// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

func always(key string) middleware.KeyFunc {
	return func(context.Context, *mcp.Request) string { return key }
}

// limited is a Limiter with a constant answer that records the keys.
type limited struct {
	after time.Duration
	err   error
	keys  []string
}

func (l *limited) Take(_ context.Context, key string) (time.Duration, error) {
	l.keys = append(l.keys, key)
	return l.after, l.err
}

func TestRateLimit(t *testing.T) {
	note, err := mcp.NewRequest(mcp.NotificationRootsListChanged, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		limiter limited
		key     string
		req     *mcp.Request
		reached bool
		code    int
	}{
		"some left":                     {limited{}, "k", call("t"), true, 0},
		"none left":                     {limited{after: 1500 * time.Millisecond}, "k", call("t"), false, mcp.CodeRateLimited},
		"not limited":                   {limited{after: time.Second}, "", call("t"), true, 0},
		"not known":                     {limited{err: errLost}, "k", call("t"), false, mcp.CodeInternalError},
		"a notification":                {limited{after: time.Second}, "k", note, true, 0},
		"a request named like one":      {limited{after: time.Second}, "k", mcptest.NewRequest(mcp.NotificationCancelled, nil), false, mcp.CodeRateLimited},
		"a list":                        {limited{after: time.Second}, "k", mcptest.NewRequest(mcp.MethodListTools, nil), false, mcp.CodeRateLimited},
		"what a client is about to ask": {limited{after: time.Second}, "k", outgoing(t, mcp.MethodListTools, nil), false, mcp.CodeRateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{res: &mcp.EmptyResult{}}
			_, err := middleware.RateLimit(always(test.key), &test.limiter)(s).ServeMCP(t.Context(), test.req)
			wantCode(t, err, test.code)
			if (s.calls == 1) != test.reached {
				t.Errorf("the handler was reached %d times", s.calls)
			}
			if after, ok := mcp.RetryAfter(err); ok && after != test.limiter.after {
				t.Errorf("may try again after %v", after)
			}
			if test.code == mcp.CodeInternalError && !errors.Is(err, errLost) {
				t.Errorf("got %v", err)
			}
		})
	}
	mustPanic(t, "RateLimit without a key", func() { middleware.RateLimit(nil, &limited{}) })
	mustPanic(t, "RateLimit without a limiter", func() { middleware.RateLimit(always("k"), nil) })
}

// outgoing returns a request that a client is about to send.
func outgoing(t *testing.T, method string, params any) *mcp.Request {
	t.Helper()
	req, err := mcp.NewRequest(method, params)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestKeys(t *testing.T) {
	ann, bob := &mcp.Principal{Issuer: "i", Subject: "ann"}, &mcp.Principal{Issuer: "i", Subject: "bob"}
	at := func(address string) middleware.KeyFunc {
		return middleware.ByAddress(func(context.Context) string { return address })
	}
	for name, test := range map[string]struct {
		key1, key2 middleware.KeyFunc
		req1, req2 *mcp.Request
		same       bool
	}{
		"same principal":         {middleware.ByPrincipal, middleware.ByPrincipal, as(ann, call("t")), as(ann, call("u")), true},
		"other principal":        {middleware.ByPrincipal, middleware.ByPrincipal, as(ann, call("t")), as(bob, call("t")), false},
		"nobody":                 {middleware.ByPrincipal, middleware.ByPrincipal, call("t"), call("u"), true},
		"nobody and somebody":    {middleware.ByPrincipal, middleware.ByPrincipal, call("t"), as(&mcp.Principal{}, call("t")), false},
		"same tool":              {middleware.ByTool, middleware.ByTool, as(ann, call("t")), as(bob, call("t")), true},
		"other tool":             {middleware.ByTool, middleware.ByTool, call("t"), call("u"), false},
		"a tool named as method": {middleware.ByTool, middleware.ByTool, call(mcp.MethodListTools), mcptest.NewRequest(mcp.MethodListTools, nil), false},
		"ports":                  {at("192.0.2.1:80"), at("192.0.2.1:81"), call("t"), call("t"), true},
		"no port":                {at("192.0.2.1:80"), at("192.0.2.1"), call("t"), call("t"), true},
		"mapped":                 {at("[::ffff:192.0.2.1]:80"), at("192.0.2.1"), call("t"), call("t"), true},
		"other address":          {at("192.0.2.1:80"), at("192.0.2.2:80"), call("t"), call("t"), false},
		"same network":           {at("[2001:db8::1]:80"), at("2001:db8::ffff:0:0:2%eth0"), call("t"), call("t"), true},
		"other network":          {at("2001:db8:0:1::1"), at("2001:db8:0:2::1"), call("t"), call("t"), false},
		"not known":              {at(""), at(""), call("t"), call("t"), true},
		"not known and known":    {at(""), at("192.0.2.1"), call("t"), call("t"), false},
		"each":                   {middleware.ByAll(middleware.ByPrincipal, middleware.ByTool), middleware.ByAll(middleware.ByPrincipal, middleware.ByTool), as(ann, call("t")), as(ann, call("u")), false},
		"each, the same":         {middleware.ByAll(middleware.ByPrincipal, middleware.ByTool), middleware.ByAll(middleware.ByPrincipal, middleware.ByTool), as(ann, call("t")), as(ann, call("t")), true},
		"moved borders":          {middleware.ByAll(always("ab"), always("c")), middleware.ByAll(always("a"), always("bc")), call("t"), call("t"), false},
	} {
		key1, key2 := test.key1(t.Context(), test.req1), test.key2(t.Context(), test.req2)
		if (key1 == key2) != test.same || key1 == "" || key2 == "" {
			t.Errorf("%s: keys are %q and %q", name, key1, key2)
		}
	}
	if got := middleware.ByAll(always("a"), always(""))(t.Context(), call("t")); got != "" {
		t.Errorf("with an empty key: got %q", got)
	}
	mustPanic(t, "ByAll of nothing", func() { middleware.ByAll() })
	mustPanic(t, "ByAll of a nil key", func() { middleware.ByAll(middleware.ByTool, nil) })
	mustPanic(t, "ByAddress of nothing", func() { middleware.ByAddress(nil) })
}

func TestTokenBucket(t *testing.T) {
	take := func(t *testing.T, b *middleware.TokenBucket, key string) time.Duration {
		t.Helper()
		after, err := b.Take(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return after
	}
	for name, do := range map[string]func(t *testing.T){
		"fills up again": func(t *testing.T) {
			b := middleware.NewTokenBucket(2, time.Second, nil)
			for i, want := range []time.Duration{0, 0, 500 * time.Millisecond, 500 * time.Millisecond} {
				if got := take(t, b, "k"); got != want {
					t.Errorf("take %d: wait %v, want %v", i, got, want)
				}
			}
			<-time.After(500 * time.Millisecond)
			if got := take(t, b, "k"); got != 0 {
				t.Errorf("after the time that it told: wait %v", got)
			}
			if got := take(t, b, "l"); got != 0 {
				t.Errorf("another key: wait %v", got)
			}
		},
		"burst": func(t *testing.T) {
			b := middleware.NewTokenBucket(60, time.Minute, &middleware.TokenBucketOptions{Burst: 1})
			if got := take(t, b, "k"); got != 0 {
				t.Errorf("the first: wait %v", got)
			}
			if got := take(t, b, "k"); got != time.Second {
				t.Errorf("the second: wait %v", got)
			}
		},
		"bounded keys": func(t *testing.T) {
			b := middleware.LimitKeys(middleware.NewTokenBucket(1, time.Hour, nil), 2)
			for _, key := range []string{"a", "b", "a", "c"} { // one is evicted
				take(t, b, key)
			}
			if take(t, b, "a") == 0 || take(t, b, "c") == 0 || take(t, b, "b") == 0 {
				t.Error("one that made room has a full bucket again")
			}
		},
		"long keys": func(t *testing.T) {
			b := middleware.NewTokenBucket(1, time.Hour, nil)
			long := strings.Repeat("x", 1<<20)
			if take(t, b, long+"a") != 0 || take(t, b, long+"b") != 0 || take(t, b, long+"a") == 0 {
				t.Error("long keys are mixed up")
			}
		},
		"the last goes to one": func(t *testing.T) {
			b := middleware.NewTokenBucket(10, time.Hour, nil)
			var passed atomic.Int32
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					if after, _ := b.Take(t.Context(), "k"); after == 0 {
						passed.Add(1)
					}
				})
			}
			if wg.Wait(); passed.Load() != 10 {
				t.Errorf("%d passed, want 10", passed.Load())
			}
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, do) })
	}
	mustPanic(t, "no requests", func() { middleware.NewTokenBucket(0, time.Second, nil) })
	mustPanic(t, "no time", func() { middleware.NewTokenBucket(1, 0, nil) })
}

// Clients learn when to retry, in every era and on every transport. They share one limit.
func TestRateLimitInEveryEra(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.RateLimit(func(_ context.Context, req *mcp.Request) string {
		if req.Method == mcp.MethodCallTool {
			return "calls"
		}
		return ""
	}, middleware.NewTokenBucket(1, time.Hour, nil)))
	mux.Tool("t", says(""))
	_, _, err := mcptest.Do(t, mux, call("t"))
	wantCode(t, err, 0)
	mux.Tool("u", says(""))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"})
		wantCode(t, err, mcp.CodeRateLimited)
		if after, ok := mcp.RetryAfter(err); !ok || after < 59*time.Minute || after > time.Hour {
			t.Errorf("got %v, %v from %v", after, ok, err)
		}
	})
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"})
		if _, ok := mcp.RetryAfter(err); !ok {
			t.Errorf("got %v", err)
		}
	})
}

func ExampleByAddress() {
	type addressKey struct{} // over HTTP, mcphttp.RequestFromContext(ctx).RemoteAddr
	key := middleware.ByAddress(func(ctx context.Context) string {
		address, _ := ctx.Value(addressKey{}).(string)
		return address
	})
	for _, address := range []string{"192.0.2.1:4711", "[2001:db8::1]:4711", ""} {
		ctx := context.WithValue(context.Background(), addressKey{}, address)
		fmt.Printf("%q\n", key(ctx, nil))
	}
	// Output:
	// "at 192.0.2.1"
	// "at 2001:db8::/64"
	// "at "
}

func ExampleRateLimit() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	perUser := middleware.NewTokenBucket(100, time.Minute, nil)
	mux.Use(middleware.RateLimit(middleware.ByPrincipal, perUser))
	dear := middleware.NewTokenBucket(1, time.Minute, nil)
	mux.With(middleware.RateLimit(middleware.ByAll(middleware.ByPrincipal, middleware.ByTool), dear)).
		Tool("report", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "done", nil }, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for range 2 {
		_, err = conn.CallTool(ctx, &mcp.CallToolParams{Name: "report"})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// too many requests; try again in 1m0s (code 429)
}

// allowed returns how many of the given number of requests with a key pass immediately.
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

// A caller that gets its key evicted by using other keys gains nothing, and takes little
// from new callers.
func TestFindingS25EvictionForgivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := middleware.LimitKeys(middleware.NewTokenBucket(60, time.Hour, nil), 64)
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
		if n := allowed(t, b, "new", 100); n < 40 || n >= 60 {
			t.Errorf("a new caller has %d, want as few as the forgotten ones, about 59", n)
		}
		<-time.After(time.Hour)
		for _, key := range []string{"mallory", "busy", "new", "newer"} {
			if n := allowed(t, b, key, 100); n != 60 {
				t.Errorf("%s: %d passed after an hour, want 60", key, n)
			}
		}
	})
}

// Keys with full buckets are evicted first.
func TestFindingS25FullBucketsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := middleware.LimitKeys(middleware.NewTokenBucket(60, time.Minute, nil), 64)
		allowed(t, b, "mallory", 60)
		for i := range 10_000 {
			allowed(t, b, fmt.Sprint("bogus ", i), 1)
			<-time.After(20 * time.Millisecond) // a bucket refills in a second
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

// limits counts the tokens taken from each key.
type limits map[string]int

func (l limits) Take(_ context.Context, key string) (time.Duration, error) {
	l[key]++
	return 0, nil
}

// Unknown tools and methods share one key. Known tools and methods have their own, from the
// first call on.
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

// The limit of a tool applies from its first calls on, even concurrent ones.
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

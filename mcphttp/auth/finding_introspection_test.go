// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcphttp/auth"
)

// flood sends unknown tokens, from several addresses in turn. All are in flight when it
// returns.
func flood(wg *sync.WaitGroup, v *auth.Introspection, tokens, addresses int) {
	for n := range tokens {
		r := bearing(fmt.Sprint("garbage-", n))
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:%d", n%addresses+1, 1024+n)
		wg.Go(func() { _, _ = v.Verify(r) })
	}
	synctest.Wait()
}

// A flood of invalid tokens does not lock out valid ones: not those from another address,
// nor those that were valid before, from any address.
func TestFindingS24GarbageStarvesNobody(t *testing.T) {
	for name, test := range map[string]struct {
		from      string
		addresses int // of the flood
		before    bool
	}{
		"another address, new token":        {"198.51.100.7:1", 1, false},
		"another address, flood of many":    {"198.51.100.7:1", 200, false},
		"another network of IPv6":           {"[2001:db8::1]:1", 1, false},
		"the same address, known token":     {"192.0.2.1:1", 1, true},
		"another address, known, of many":   {"198.51.100.7:1", 200, true},
		"the address of the proxy, of many": {"192.0.2.1:1", 200, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newInspector(map[string]claims{"good": usual(claims{"active": true, "exp": time.Now().Unix() + 7200})})
				v := i.verifier(auth.IntrospectionOptions{MaxConcurrent: 4, CacheAge: time.Second})
				ask := func() error {
					r := bearing("good")
					r.RemoteAddr = test.from
					_, err := v.Verify(r)
					return err
				}
				if test.before {
					if err := ask(); err != nil {
						t.Fatal(err)
					}
					pass(time.Minute) // until it is forgotten
				}
				i.mu.Lock()
				i.delay = 10 * time.Millisecond
				i.mu.Unlock()
				var wg sync.WaitGroup
				defer wg.Wait()
				flood(&wg, v, 3000, test.addresses)
				start := time.Now()
				if err := ask(); err != nil {
					t.Errorf("kept out: %v", err)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Behind a proxy, Source distinguishes callers.
func TestFindingS24Source(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInspector(map[string]claims{"good": usual(claims{"active": true})})
		i.delay = 10 * time.Millisecond
		v := i.verifier(auth.IntrospectionOptions{MaxConcurrent: 4, Source: func(r *http.Request) string { return r.Header.Get("X-Real-IP") }})
		var wg sync.WaitGroup
		defer wg.Wait()
		flood(&wg, v, 3000, 1)
		r := bearing("good")
		r.Header.Set("X-Real-IP", "198.51.100.7")
		r.RemoteAddr = "192.0.2.1:1"
		if _, err := v.Verify(r); err != nil {
			t.Errorf("kept out: %v", err)
		}
	})
}

// Turns are returned by those who gave up waiting and those who were rejected.
func TestFindingS24TurnsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInspector(map[string]claims{"good": usual(claims{"active": true})})
		v := i.verifier(auth.IntrospectionOptions{MaxConcurrent: 4, CacheAge: time.Second})
		i.answers["proven"] = i.answers["good"]
		if _, err := v.Verify(bearing("proven")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		i.delay = time.Hour
		var wg sync.WaitGroup
		for range 3 {
			flood(&wg, v, 2000, 3)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := v.Verify(bearing("proven").WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a proven token: %v", err)
			}
			cancel()
			wg.Wait() // all have given up
		}
		i.mu.Lock()
		i.delay, i.most = 10*time.Millisecond, 0
		i.mu.Unlock()
		pass(time.Minute)
		start := time.Now()
		flood(&wg, v, 40, 1)
		wg.Wait()
		if took := time.Since(start); took != 100*time.Millisecond || i.most != 4 {
			t.Errorf("40 questions of 10 ms took %v, %d at once", took, i.most)
		}
		if _, err := v.Verify(bearing("good")); err != nil {
			t.Error(err)
		}
	})
}

// A proven token goes first only as long as it is valid.
func TestFindingS24RevokedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInspector(map[string]claims{"good": usual(claims{"active": true, "exp": time.Now().Unix() + 7200})})
		v := i.verifier(auth.IntrospectionOptions{MaxConcurrent: 1, CacheAge: time.Second})
		if _, err := v.Verify(bearing("good")); err != nil {
			t.Fatal(err)
		}
		i.mu.Lock()
		clear(i.answers)
		i.mu.Unlock()
		pass(time.Minute)
		if _, err := v.Verify(bearing("good")); !isRefusal(err) {
			t.Fatal(err)
		}
		pass(time.Minute)
		i.mu.Lock()
		i.delay = 100 * time.Millisecond
		i.mu.Unlock()
		var wg sync.WaitGroup
		defer wg.Wait()
		flood(&wg, v, 20, 1)
		start := time.Now()
		r := bearing("good")
		r.RemoteAddr = "192.0.2.1:1" // of the flood
		if _, err := v.Verify(r); !isRefusal(err) || time.Since(start) < 2*time.Second {
			t.Errorf("%v, after %v", err, time.Since(start))
		}
	})
}

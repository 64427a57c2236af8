// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// faulty is a store in which a test can cause faults.
type faulty struct {
	store.Values

	read, write atomic.Pointer[func(context.Context) error] // nil if it works
}

func fail(err error) *func(context.Context) error {
	f := func(context.Context) error { return err }
	return &f
}

var answersNothing = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func check(ctx context.Context, f *atomic.Pointer[func(context.Context) error]) error {
	if fault := f.Load(); fault != nil {
		return (*fault)(ctx)
	}
	return nil
}

func (s *faulty) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := check(ctx, &s.read); err != nil {
		return nil, 0, err
	}
	return s.Values.Get(ctx, key)
}

func (s *faulty) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if err := check(ctx, &s.write); err != nil {
		return 0, err
	}
	return s.Values.Put(ctx, key, value, version, ttl)
}

func (s *faulty) Take(ctx context.Context, key string) ([]byte, error) {
	if err := check(ctx, &s.write); err != nil {
		return nil, err
	}
	return s.Values.Take(ctx, key)
}

// While a store is down, full, slow or read-only, requests that need it fail with 503 and a
// log line, within ten seconds. All others are served.
func TestFaultyStore(t *testing.T) {
	down := fail(errors.New("no connection"))
	for name, c := range map[string]struct {
		read, write *func(context.Context) error
		restored    int // the status of a request in a session of another replica
	}{
		"down":      {down, down, http.StatusServiceUnavailable},
		"full":      {nil, fail(store.ErrFull), http.StatusOK},
		"slow":      {&answersNothing, &answersNothing, http.StatusServiceUnavailable},
		"read-only": {nil, fail(errors.New("permission denied")), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared, log := &faulty{Values: store.NewMemory(nil)}, new(logged)
				logger := slog.New(slog.NewTextHandler(log, nil))
				f := newFleet(t, shared)
				s, other := f.add(tools(), &mcphttp.Options{Logger: logger}), f.add(tools(), nil)
				h := s.handler
				known, unknown := s.open("2025-11-25"), other.open("2025-11-25")
				shared.read.Store(c.read)
				shared.write.Store(c.write)
				body, modern := callModern("hello")
				for what, r := range map[string]struct {
					body   string
					header header
					status int
				}{
					"a call of the newest revision": {body, modern, http.StatusOK},
					"a call in a session":           {call(1, "hello"), known, http.StatusOK},
					"a call with events":            {call(2, "steps"), known, http.StatusOK},
					"a handshake":                   {initialize("2025-11-25"), nil, http.StatusServiceUnavailable},
					"a change of a session":         {`{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"error"}}`, known, http.StatusServiceUnavailable},
					"a session of another replica":  {call(4, "hello"), unknown, c.restored},
				} {
					began := time.Now()
					got := whole(t, s.post(r.body, r.header))
					if took := time.Since(began); got.status != r.status || took > 10*time.Second {
						t.Errorf("%s: %d %s after %v, want %d", what, got.status, got.body, took, r.status)
					}
					if got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") == "" {
						t.Errorf("%s: it does not say when to try again", what)
					}
				}
				<-time.After(10 * time.Second) // the session of the handshake is removed in the background
				if got := log.String(); !strings.Contains(got, "a session was not saved") {
					t.Errorf("the log is %s", got)
				}
				shared.read.Store(nil)
				shared.write.Store(nil)
				if got := answersHello(t, s.site, unknown); got != http.StatusOK {
					t.Errorf("after the fault: %d", got)
				}
				_ = h.Shutdown(t.Context())
				s.close()
				other.close()
			})
		})
	}
}

// A client is told that its session has ended only once the store no longer has it. Until
// then, the client may retry.
func TestFaultyStoreEndsSession(t *testing.T) {
	for name, fault := range map[string]*func(context.Context) error{"down": fail(errors.New("no connection")), "slow": &answersNothing} {
		bubble(t, name, func(t *testing.T) {
			shared := &faulty{Values: store.NewMemory(nil)}
			s := newFleet(t, shared).add(tools(), nil)
			h := s.open("2025-11-25")
			for _, test := range []struct {
				fault  *func(context.Context) error
				status int
				call   int // the status of a later call
			}{
				{fault, http.StatusServiceUnavailable, http.StatusOK},
				{nil, http.StatusNoContent, http.StatusNotFound},
			} {
				shared.write.Store(test.fault)
				began := time.Now()
				got := whole(t, s.do(s.request(t.Context(), http.MethodDelete, "", h)))
				if took := time.Since(began); got.status != test.status || took > 10*time.Second {
					t.Errorf("DELETE: %d %s after %v, want %d", got.status, got.body, took, test.status)
				}
				if got := answersHello(t, s.site, h); got != test.call {
					t.Errorf("then a call: %d, want %d", got, test.call)
				}
			}
		})
	}
}

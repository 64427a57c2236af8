// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

// A fate says at which operation on the store a replica is killed. Each request has a replica of
// its own: what the one before it had in memory is gone.
type fate struct {
	values   store.Values
	provider http.Handler
	at       int
	after    bool // the operation is carried out

	mu   sync.Mutex
	ops  int
	what string // what the replica was doing when it was killed
}

const frontURL, providerURL = "http://127.0.0.1:1", "http://127.0.0.1:2"

var errKilled = errors.New("killed")

// RoundTrip implements http.RoundTripper.
func (f *fate) RoundTrip(r *http.Request) (res *http.Response, err error) {
	defer func() {
		switch killed := recover(); killed {
		case nil:
		case errKilled:
			err = errKilled
		default:
			panic(killed)
		}
	}()
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	h := f.provider
	if strings.HasPrefix(r.URL.String(), frontURL) {
		if h, err = newFront(frontURL, providerURL, make([]byte, 32), &mortal{Values: f.values, fate: f, path: r.URL.Path}, f, quiet); err != nil {
			return nil, err
		}
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, in)
	res = rec.Result()
	res.Request = r
	return res, nil
}

// A mortal is what a replica has of the store.
type mortal struct {
	store.Values

	fate *fate
	path string
	dead bool
}

func (m *mortal) do(op, key string, do func()) {
	if m.dead { // a function that was deferred
		panic(errKilled)
	}
	m.fate.mu.Lock()
	m.fate.ops++
	m.dead = m.fate.ops == m.fate.at
	if m.dead {
		m.fate.what = m.path + map[bool]string{false: " before ", true: " after "}[m.fate.after] + op + " " + strings.Split(key, "/")[1]
	}
	m.fate.mu.Unlock()
	if !m.dead || m.fate.after {
		do()
	}
	if m.dead {
		panic(errKilled)
	}
}

func (m *mortal) Get(ctx context.Context, key string) (value []byte, version uint64, err error) {
	m.do("Get", key, func() { value, version, err = m.Values.Get(ctx, key) })
	return value, version, err
}

func (m *mortal) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (next uint64, err error) {
	m.do("Put", key, func() { next, err = m.Values.Put(ctx, key, value, version, ttl) })
	return next, err
}

func (m *mortal) Take(ctx context.Context, key string) (value []byte, err error) {
	m.do("Take", key, func() { value, err = m.Values.Take(ctx, key) })
	return value, err
}

// An outcome is what has happened to all guests.
type outcome struct {
	t *testing.T

	mu    sync.Mutex
	done  map[string]bool
	again map[string]bool // the kills after which a user had to start again
	kills int
}

// visit is the visit of a guest whose replica is killed at an operation. It reports whether
// there are so many.
func (o *outcome) visit(f *fate, ways ...way) bool {
	r := newReport(config{}, nil, io.Discard)
	v := &visitor{url: frontURL, report: r, rng: rand.New(rand.NewPCG(1, uint64(f.at)))}
	newGuest(v, f).visit(o.t.Context(), ways...)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, wrong := range r.wrong {
		o.t.Errorf("killed at %s: %s", f.what, wrong)
	}
	for kind, c := range r.counts {
		o.done[kind] = true
		if kind == "login" && c.again > 0 {
			o.again[f.what] = true
		}
	}
	if f.what != "" {
		o.kills++
	}
	return f.what != ""
}

// check checks when users had to start again: after the provider's answer was taken, and after
// a code was exchanged and nobody learned for what.
func (o *outcome) check() {
	o.t.Logf("%d kills; users started again after %q", o.kills, slices.Sorted(maps.Keys(o.again)))
	for what := range o.again {
		if what == "/callback before Take login" || what != "/token after Put grant" && !strings.HasPrefix(what, "/callback ") {
			o.t.Errorf("killed at %s: the user had to start again", what)
		}
	}
	for _, what := range []string{"/callback after Take login", "/token after Put grant"} {
		if !o.again[what] {
			o.t.Errorf("killed at %s: the user did not have to start again", what)
		}
	}
	for _, kind := range []string{"login", "code twice", "refresh", "refresh together", "refused", "revoke", "use"} {
		if !o.done[kind] {
			o.t.Errorf("nothing of the kind %q was done", kind)
		}
	}
}

// guestWays are visits that do all that guests do. The first does nothing at the same time, so that
// its operations come in the same order each time.
var guestWays = [][]way{
	{{refreshes: 1}},
	{{twice: true}, {refreshes: 2, replays: true}},
}

// Each replica serves one request, and one is killed before or after each single operation on
// the store, also with the lock by which the provider's token is refreshed.
func TestKilledAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outcome{t: t, done: map[string]bool{}, again: map[string]bool{}}
		provider := newProvider(providerURL, 5)
		ways := slices.Concat(guestWays, [][]way{{{replays: true, waits: true}}})
		for _, ways := range ways {
			for n, more := 0, true; more; n++ {
				more = o.visit(&fate{values: store.NewMemory(nil), provider: provider, at: 1 + n/2, after: n%2 == 1}, ways...)
			}
		}
		o.check()
	})
}

// The same with the stores that replicas share, where the provider's token lasts.
func TestKilledAnywhereWithEngine(t *testing.T) {
	for _, engine := range []string{"nats", "redis"} {
		t.Run(engine, func(t *testing.T) {
			if engine == "redis" && !hasRedis() {
				t.Skip(errNoRedis)
			}
			log, err := os.Create(filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			w, err := newWorld(t.Context(), &config{store: engine}, t.TempDir(), log)
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			shared, err := openStore(t.Context(), &w.replicas[0].role)
			if err != nil {
				t.Fatal(err)
			}
			o := &outcome{t: t, done: map[string]bool{}, again: map[string]bool{}}
			provider := newProvider(providerURL, 3600)
			for _, ways := range guestWays {
				var all sync.WaitGroup
				for n := range 100 {
					all.Go(func() {
						o.visit(&fate{values: shared, provider: provider, at: 1 + n/2, after: n%2 == 1}, ways...)
					})
				}
				all.Wait()
			}
			o.check()
		})
	}
}

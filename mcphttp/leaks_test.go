// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/go-psi/psi/internal/test/leak"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

func TestMain(m *testing.M) { leak.Main(m) }

// contexts records the contexts passed to a client or a store. They must be done at the end
// of the test, without waiting for their deadlines.
type contexts struct {
	mu   sync.Mutex
	open []use
}

type use struct {
	context.Context
	of string
}

func (u use) isDone() bool { return u.Err() != nil }

func watchContexts(t testing.TB) *contexts {
	t.Helper()
	c := new(contexts)
	t.Cleanup(func() {
		limit := time.After(time.Second)
		for _, u := range c.all() {
			select {
			case <-u.Done():
			case <-limit:
				t.Errorf("%s: the context is not done", u.of)
				return
			}
		}
	})
	return c
}

// all returns the current contexts. No lock is held while waiting for them: in a synctest
// bubble, a goroutine blocked on the lock would stop the clock.
func (c *contexts) all() []use {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.open)
}

func (c *contexts) watch(ctx context.Context, of string) {
	if ctx.Done() == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == cap(c.open) {
		c.open = slices.DeleteFunc(c.open, use.isDone)
	}
	c.open = append(c.open, use{ctx, of})
}

// watchedTransport records the contexts of requests.
type watchedTransport struct {
	*http.Transport
	*contexts
}

func (w *watchedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w.watch(r.Context(), r.Method+" "+r.URL.String())
	return w.Transport.RoundTrip(r)
}

// watchedStore records the contexts of its calls.
type watchedStore struct {
	store.Values
	*contexts
}

func (w *watchedStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	w.watch(ctx, "Get "+key)
	return w.Values.Get(ctx, key)
}

func (w *watchedStore) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	w.watch(ctx, "Put "+key)
	return w.Values.Put(ctx, key, value, version, ttl)
}

func (w *watchedStore) Take(ctx context.Context, key string) ([]byte, error) {
	w.watch(ctx, "Take "+key)
	return w.Values.Take(ctx, key)
}

// Once a session has ended, nothing refers to it: no stream, heartbeat or request.
func TestSessionsLeaveNothing(t *testing.T) {
	for name, converse := range map[string]func(*testing.T) weak.Pointer[mcp.Session]{"streamable HTTP": converse, "HTTP+SSE": converseSSE} {
		t.Run(name, func(t *testing.T) { untilCollected(t, "the session", converse(t)) })
	}
}

// converse uses the streams of a session, ends the session, and returns it.
func converse(t *testing.T) (left weak.Pointer[mcp.Session]) {
	t.Helper()
	mux := tools()
	step := polling(mux)
	h := newHandler(t, mux, &mcphttp.Options{Heartbeat: time.Millisecond})
	s := serve(t, h)
	session := s.open("2025-11-25")
	for p := range h.Sessions() {
		left = weak.Make(p)
	}
	own := read(t, s.do(s.request(t.Context(), http.MethodGet, "", session)))
	own.next()
	asked := read(t, s.post(call(1, "poll"), session))
	first, _ := asked.next()
	resumed := s.comeBack(session, first.LastEventID)
	resumed.message()
	close(step)
	if got := resumed.message(); !strings.Contains(got, "polled") {
		t.Errorf("the call is answered by %s", got)
	}
	s.do(s.request(t.Context(), http.MethodDelete, "", session))
	for _, stream := range []*reader{own, asked, resumed} {
		for _, ok := stream.next(); ok; _, ok = stream.next() {
			continue
		}
	}
	return left
}

// converseSSE opens a session, ends the session, and returns it.
func converseSSE(t *testing.T) (left weak.Pointer[mcp.Session]) {
	t.Helper()
	h := mcphttp.NewSSEHandler(tools(), &mcphttp.Options{Heartbeat: time.Millisecond, Logger: quiet})
	t.Cleanup(func() { endAll(t, h) })
	s := serve(t, h)
	ctx, leave := context.WithCancel(t.Context())
	stream := read(t, s.do(s.request(ctx, http.MethodGet, "", nil)))
	stream.next()
	for p := range h.Sessions() {
		left = weak.Make(p)
	}
	leave()
	for _, ok := stream.next(); ok; _, ok = stream.next() {
		continue
	}
	return left
}

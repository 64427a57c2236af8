// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// watched is a store whose logs can be counted, and which can be made to fail.
type watched struct {
	*store.Memory

	mu    sync.Mutex
	logs  map[string]bool
	drops int
	down  bool
}

func newWatched() *watched {
	return &watched{Memory: store.NewMemory(nil), logs: map[string]bool{}}
}

func (w *watched) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs[log] = true
	return w.Memory.Append(ctx, log, data, keep)
}

func (w *watched) Drop(ctx context.Context, log string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.logs, log)
	w.drops++
	return w.Memory.Drop(ctx, log)
}

func (w *watched) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return nil, 0, errors.New("the store is down")
	}
	return w.Memory.Get(ctx, key)
}

func (w *watched) left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.logs)
}

func (w *watched) dropped() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drops
}

func (w *watched) fail(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

// twins returns two replicas that share a store.
func twins(t *testing.T, shared store.Store, mux func() *mcp.Mux) (one, two *site, first *mcphttp.Handler) {
	opts := mcphttp.Options{Store: shared, SessionIdle: 10 * time.Minute, Heartbeat: -1}
	a, b := opts, opts
	first = newHandler(t, mux(), &a)
	return serve(t, first), serve(t, newHandler(t, mux(), &b)), first
}

func answersHello(t *testing.T, s *site, h header) int {
	t.Helper()
	res := whole(t, s.post(call(1, "hello"), h))
	if res.status == 200 && !strings.Contains(res.body, "hello") {
		t.Errorf("the answer is %s", res.body)
	}
	return res.status
}

// A session in use remains in the store, however long ago it was opened. An idle session
// does not.
func TestSharedSessionLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, _ := twins(t, store.NewMemory(nil), tools)
		h, idle := one.open("2025-11-25"), one.open("2025-11-25")
		for range 30 {
			<-time.After(7 * time.Minute)
			if got := answersHello(t, one, h); got != 200 {
				t.Fatalf("where it was opened: %d", got)
			}
		}
		if got := answersHello(t, two, h); got != 200 {
			t.Errorf("at the other replica: %d", got)
		}
		for _, s := range []*site{one, two} {
			if got := answersHello(t, s, idle); got != 404 {
				t.Errorf("a session that was idle for hours: %d", got)
			}
		}
	})
}

// A session whose stream is open remains in the store.
func TestSharedStreamLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, _ := twins(t, store.NewMemory(nil), tools)
		h := one.open("2025-11-25")
		read(t, one.do(one.request(t.Context(), http.MethodGet, "", h)))
		<-time.After(3 * time.Hour)
		if got := answersHello(t, two, h); got != 200 {
			t.Errorf("at the other replica: %d", got)
		}
	})
}

// Once one replica has ended a session, the others reject it, even if they have served it.
func TestSharedSessionEnds(t *testing.T) {
	ends := map[string]func(*testing.T, *site, *mcphttp.Handler, header){
		"DELETE": func(_ *testing.T, s *site, _ *mcphttp.Handler, h header) {
			s.do(s.request(s.t.Context(), http.MethodDelete, "", h))
		},
		"Close": func(_ *testing.T, _ *site, first *mcphttp.Handler, _ header) {
			for session := range first.Sessions() {
				session.Close()
			}
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two, first := twins(t, store.NewMemory(nil), tools)
				h := one.open("2025-11-25")
				if got := answersHello(t, two, h); got != 200 {
					t.Fatalf("at the other replica: %d", got)
				}
				end(t, one, first, h)
				synctest.Wait()
				if got := answersHello(t, one, h); got != 404 {
					t.Errorf("where it has ended: %d", got)
				}
				<-time.After(6 * time.Minute)
				if got := answersHello(t, two, h); got != 404 {
					t.Errorf("at the other replica: %d", got)
				}
			})
		})
	}
}

// A session that a replica drops during shutdown or to make room for others can be continued
// from the store.
func TestSharedSessionGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, first := twins(t, store.NewMemory(nil), tools)
		h := one.open("2025-11-25")
		if err := first.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := answersHello(t, two, h); got != 200 {
			t.Errorf("after a shutdown: %d", got)
		}
		tight := newHandler(t, tools(), &mcphttp.Options{Store: store.NewMemory(nil), MaxSessions: 1})
		s := serve(t, tight)
		evicted := s.open("2025-11-25")
		s.open("2025-11-25")
		synctest.Wait()
		if got := answersHello(t, s, evicted); got != 200 {
			t.Errorf("after it had to make room: %d", got)
		}
		n := 0
		for range tight.Sessions() {
			n++
		}
		if n > 1 {
			t.Errorf("%d sessions are open, at most 1 is allowed", n)
		}
	})
}

// A session is deleted even if its client does not wait for the response.
func TestSharedSessionEndsWithoutClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, first := twins(t, store.NewMemory(nil), tools)
		h := one.open("2025-11-25")
		ctx, cancel := context.WithCancel(t.Context())
		r := one.request(ctx, http.MethodDelete, "", h)
		cancel()
		first.ServeHTTP(httptest.NewRecorder(), r)
		synctest.Wait()
		if got := answersHello(t, two, h); got != 404 {
			t.Errorf("after DELETE: %d", got)
		}
	})
}

// A store that does not respond does not make a client give up its session.
func TestSharedStoreDown(t *testing.T) {
	shared := newWatched()
	one, two, _ := twins(t, shared, tools)
	h := one.open("2025-11-25")
	shared.fail(true)
	if got := answersHello(t, two, h); got != http.StatusServiceUnavailable {
		t.Errorf("while the store is down: %d, want 503", got)
	}
	shared.fail(false)
	if got := answersHello(t, two, h); got != 200 {
		t.Errorf("after that: %d", got)
	}
}

// A request in flight does not store its session again after the session has ended.
func TestSharedSessionStaysEnded(t *testing.T) {
	for _, body := range []string{subscribe("test://doc"), "[" + subscribe("test://doc") + "]"} {
		bubble(t, body[:1], func(t *testing.T) {
			mux, hold := tools(), make(chan struct{})
			mux.Use(mcp.NewMiddleware(func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					if req.Method == mcp.MethodListen {
						<-hold
					}
					return next.ServeMCP(ctx, req)
				})
			}))
			one, two, _ := twins(t, store.NewMemory(nil), func() *mcp.Mux { return mux })
			h := one.open("2025-03-26")
			var subscribing sync.WaitGroup
			subscribing.Go(func() { one.post(body, h) })
			synctest.Wait()
			if got := one.do(one.request(t.Context(), http.MethodDelete, "", h)).StatusCode; got != http.StatusNoContent {
				t.Errorf("DELETE: %d", got)
			}
			close(hold)
			subscribing.Wait()
			for _, s := range []*site{one, two} {
				if got := answersHello(t, s, h); got != http.StatusNotFound {
					t.Errorf("a call of a session that has ended: %d", got)
				}
			}
		})
	}
}

// heldAppend accepts records only after hold is closed.
type heldAppend struct {
	*watched
	hold chan struct{}
}

func (h *heldAppend) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	<-h.hold
	return h.watched.Append(ctx, log, data, keep)
}

// An event that the store accepts after its session has ended is removed.
func TestEndedSessionFreesLateEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &heldAppend{newWatched(), make(chan struct{})}
		s := serve(t, newHandler(t, tools(), optionsWith(shared)))
		h := s.open("2025-11-25")
		asked := make(chan reply, 1)
		go func() { asked <- whole(t, s.post(call(1, "steps"), h)) }()
		synctest.Wait()
		s.do(s.request(t.Context(), http.MethodDelete, "", h))
		close(shared.hold)
		<-asked
		synctest.Wait()
		if n := shared.left(); n != 0 {
			t.Errorf("%d logs are left", n)
		}
	})
}

// The events of a session are removed with it: those of completed requests, of one in
// flight, and of the standalone stream.
func TestEndedSessionFreesEvents(t *testing.T) {
	for _, end := range []string{"DELETE", "Close"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux := tools()
				mux.Tool("say and wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
					mcp.Progress(ctx, 1, 2, "")
					<-ctx.Done()
					return "", context.Cause(ctx)
				}, nil))
				shared := newWatched()
				one, _, first := twins(t, shared, func() *mcp.Mux { return mux })
				h := one.open("2025-11-25")
				own := read(t, one.do(one.request(t.Context(), http.MethodGet, "", h)))
				for i := range 3 {
					events(t, one.post(call(i, "steps"), h), 0)
				}
				serving := one.post(call(9, "say and wait"), h)
				mux.Tool("new", uncalled)
				own.message()
				synctest.Wait()
				if got := shared.left(); got != 5 {
					t.Errorf("there are %d logs, want 5", got)
				}
				if end == "DELETE" {
					one.do(one.request(t.Context(), http.MethodDelete, "", h))
				} else {
					for session := range first.Sessions() {
						session.Close()
					}
				}
				whole(t, serving)
				synctest.Wait()
				if got := shared.left(); got != 0 {
					t.Errorf("%d logs are left: %v", got, shared.logs)
				}
			})
		})
	}
}

// A slow handshake is not mistaken for a session that another replica has ended.
func TestSlowHandshakeIsNoEndedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func() *mcp.Mux {
			mux := tools()
			mux.Use(func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					if req.Method == mcp.MethodDiscover {
						select {
						case <-time.After(6 * time.Minute): // longer than a sweep interval
						case <-ctx.Done():
							return nil, context.Cause(ctx)
						}
					}
					return next.ServeMCP(ctx, req)
				})
			})
			return mux
		}
		one, two, _ := twins(t, store.NewMemory(nil), slow)
		h := one.open("2025-11-25")
		for _, s := range []*site{one, two} {
			if got := answersHello(t, s, h); got != 200 {
				t.Errorf("after a slow handshake: %d", got)
			}
		}
	})
}

// If a replica's handler cannot subscribe to a resource that the session subscribed to at
// another replica, the replica retries, and then sends an update in case it missed one.
func TestSharedSubscriptionIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		var listens atomic.Int32
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == mcp.MethodListen {
					if n := listens.Add(1); n == 2 || n == 3 { // the first is for the stream
						return nil, errors.New("not now")
					}
				}
				return next.ServeMCP(ctx, req)
			})
		})
		shared := store.NewMemory(nil)
		one, two := serve(t, newHandler(t, mux, optionsWith(shared))), serve(t, newHandler(t, tools(), optionsWith(shared)))
		h := two.open("2025-11-25")
		own := read(t, one.do(one.request(t.Context(), http.MethodGet, "", h)))
		own.next()
		whole(t, two.post(subscribe("test://doc"), h))
		for range 2 { // the resource may have changed before the replica could subscribe
			for !strings.Contains(within(t, time.Minute, "an update", messages(own)), "test://doc") {
			}
			mux.ResourceUpdated("test://doc")
		}
		one.close()
		two.close()
	})
}

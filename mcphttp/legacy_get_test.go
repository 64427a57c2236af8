// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// The first ID of a standalone stream denotes its beginning. A client that resumes from it
// gets everything, or an error if some events have expired.
func TestOwnStreamBegins(t *testing.T) {
	changed := func(mux *mcp.Mux, name string) {
		mux.Tool(name, uncalled)
		synctest.Wait()
	}
	const ttl = 10 * time.Minute
	for name, test := range map[string]struct {
		meanwhile func(mux *mcp.Mux)
		status    int
		want      int // changes that the client receives after resuming
	}{
		"nothing":     {func(*mcp.Mux) {}, http.StatusOK, 0},
		"no change":   {func(*mcp.Mux) { <-time.After(2 * ttl) }, http.StatusOK, 0},
		"two changes": {func(m *mcp.Mux) { changed(m, "a"); <-time.After(time.Minute); changed(m, "b") }, http.StatusOK, 2},
		"all expired": {func(m *mcp.Mux) { changed(m, "a"); <-time.After(2 * ttl) }, http.StatusNotFound, 0},
		"the first expired": {func(m *mcp.Mux) {
			changed(m, "a")
			<-time.After(2 * ttl)
			changed(m, "b")
		}, http.StatusNotFound, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux := tools()
				s := serve(t, newHandler(t, mux, &mcphttp.Options{Heartbeat: -1}))
				h := s.open("2025-11-25")
				first := read(t, s.do(s.request(t.Context(), http.MethodGet, "", h)))
				primed, _ := first.next()
				test.meanwhile(mux)
				res := s.do(s.request(t.Context(), http.MethodGet, "", with(h, header{"Last-Event-ID": primed.LastEventID})))
				if res.StatusCode != test.status {
					t.Fatalf("status %d, want %d", res.StatusCode, test.status)
				}
				if res.StatusCode != http.StatusOK {
					return
				}
				again := read(t, res)
				changed(mux, "last")
				for i := range test.want + 1 {
					if got := again.message(); !strings.Contains(got, "tools/list_changed") {
						t.Errorf("message %d is %s", i, got)
					}
				}
			})
		})
	}
}

// panickingWriter is a ResponseWriter of middleware that gives up.
type panickingWriter struct{ *httptest.ResponseRecorder }

func (panickingWriter) Write([]byte) (int, error) { panic(http.ErrAbortHandler) }

// A panic of the ResponseWriter when a standalone stream begins affects only its request,
// not the process.
func TestOwnStreamWriterPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t, tools(), nil)
		s := serve(t, handler)
		session := s.open("2025-11-25")
		ctx, leave := context.WithCancel(t.Context())
		get := s.request(ctx, http.MethodGet, "", session)
		get.RequestURI = "/"
		done := make(chan struct{})
		go func() {
			defer close(done)
			handler.ServeHTTP(panickingWriter{httptest.NewRecorder()}, get)
		}()
		synctest.Wait()
		leave()
		<-done
		primed, ok := read(t, s.do(s.request(t.Context(), http.MethodGet, "", session))).next()
		if !ok || primed.LastEventID == "" {
			t.Errorf("the next GET begins with %+v", primed)
		}
	})
}

// slowListen is a handler whose subscriptions take as long as a test wants, like those of a
// gateway.
type slowListen struct {
	mcp.Handler
	mux *mcp.Mux

	mu    sync.Mutex
	gates []chan struct{} // of the next subscriptions; nil for one that does not wait
}

func newSlowListen(gates ...chan struct{}) *slowListen {
	mux := tools()
	return &slowListen{Handler: mux, mux: mux, gates: gates}
}

func (h *slowListen) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Method == mcp.MethodListen {
		if gate := h.next(); gate != nil {
			<-gate // ignores ctx
		}
	}
	return h.Handler.ServeMCP(ctx, req)
}

func (h *slowListen) next() (gate chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.gates) > 0 {
		gate, h.gates = h.gates[0], h.gates[1:]
	}
	return gate
}

func (h *slowListen) change(name string) {
	h.mux.Tool(name, uncalled)
	synctest.Wait()
}

// pending is a GET whose response header may not have arrived.
type pending struct {
	cancel context.CancelFunc
	opened chan *reader // closed without a value if there was no response
}

// get starts a GET for the standalone stream.
func (s *site) get(h header) *pending {
	ctx, cancel := context.WithCancel(s.t.Context())
	p := &pending{cancel, make(chan *reader, 1)}
	go func() {
		defer close(p.opened)
		res, err := s.client.Do(s.request(ctx, http.MethodGet, "", h))
		if err != nil {
			return
		}
		p.opened <- read(s.t, res)
	}()
	synctest.Wait()
	return p
}

// hears returns the number of changes that a stream reports until it ends or is silent for a
// minute.
func (r *reader) hears() (changes int, ended bool) {
	for {
		select {
		case e, ok := <-r.events:
			if !ok {
				return changes, true
			}
			if strings.Contains(e.Data, mcp.NotificationToolsListChanged) {
				changes++
			}
		case <-time.After(time.Minute):
			return changes, false
		}
	}
}

// wantAlive checks that a stream reports a change and continues.
func wantAlive(t *testing.T, r *reader, h *slowListen, name string) {
	t.Helper()
	for len(r.events) > 0 {
		<-r.events
	}
	h.change(name)
	if n, ended := r.hears(); n != 1 || ended {
		t.Errorf("after %s, the stream heard of %d changes, want 1; it has ended: %v", name, n, ended)
	}
}

// C-M2, W4: a GET that becomes ready after a newer one has taken over the stream does not
// take it back, but ends.
func TestFindingCM2W4LateGET(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		h := newSlowListen(nil, gate)
		s := serve(t, newHandler(t, h, nil))
		session := s.open("2025-11-25")
		s.get(session)
		late := s.get(session)
		newest := within(t, time.Minute, "the answer to the newer GET", s.get(session).opened)
		close(gate)
		if n, ended := within(t, time.Minute, "the answer to the older GET", late.opened).hears(); n != 0 || !ended {
			t.Errorf("the older GET heard of %d changes; it has ended: %v", n, ended)
		}
		wantAlive(t, newest, h, "one")
		<-time.After(time.Hour)
		wantAlive(t, newest, h, "two")
		s.close()
	})
}

// C-M2: a GET whose client disconnects before it is ready leaves the stream to earlier and
// later GETs.
func TestFindingCM2CancelledGET(t *testing.T) {
	for _, resumes := range []string{"", "0-0"} {
		bubble(t, resumes, func(t *testing.T) {
			gate, never := make(chan struct{}), make(chan struct{})
			defer close(never)
			h := newSlowListen(nil, gate, never)
			s := serve(t, newHandler(t, h, nil))
			session := s.open("2025-11-25")
			first := within(t, time.Minute, "the first GET", s.get(session).opened)
			second := s.get(with(session, header{"Last-Event-ID": resumes}))
			second.cancel()
			synctest.Wait()
			wantAlive(t, first, h, "one")
			close(gate) // the second GET becomes ready too late
			synctest.Wait()
			wantAlive(t, first, h, "two")
			third := s.get(session) // waits
			wantAlive(t, first, h, "three")
			fourth := within(t, time.Minute, "the fourth GET", s.get(session).opened)
			wantAlive(t, fourth, h, "four")
			if _, ended := first.hears(); !ended {
				t.Error("the first GET goes on")
			}
			third.cancel()
			synctest.Wait()
			wantAlive(t, fourth, h, "five")
			s.close()
		})
	}
}

// W4: of many concurrent GETs, one ends up with the stream and reports changes.
func TestFindingW4ManyGETs(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			h := newSlowListen()
			s := serve(t, newHandler(t, h, nil))
			session := s.open("2025-11-25")
			var gets []*pending
			for range 10 {
				ctx, cancel := context.WithCancel(t.Context())
				p := &pending{cancel, make(chan *reader, 1)}
				gets = append(gets, p)
				go func() {
					defer close(p.opened)
					if res, err := s.client.Do(s.request(ctx, http.MethodGet, "", session)); err == nil {
						p.opened <- read(t, res)
					}
				}()
			}
			for _, p := range gets[:5] {
				p.cancel()
			}
			synctest.Wait()
			last := within(t, time.Minute, "the last GET", s.get(session).opened)
			wantAlive(t, last, h, "one")
			for _, p := range gets {
				if r := <-p.opened; r != nil {
					if _, ended := r.hears(); !ended {
						t.Error("another GET goes on")
					}
				}
			}
			wantAlive(t, last, h, "two")
			s.close()
		})
	}
}

// W4: a client that reconnects gets the changes in between, even if its new GET is not ready
// when the old one loses its connection.
func TestFindingW4GapBetweenGETs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		h := newSlowListen(nil, gate)
		s := serve(t, newHandler(t, h, nil))
		session := s.open("2025-11-25")
		first := s.get(session)
		primed, _ := within(t, time.Minute, "the first GET", first.opened).next()
		second := s.get(with(session, header{"Last-Event-ID": primed.LastEventID}))
		first.cancel()
		synctest.Wait()
		h.change("one")
		close(gate)
		if n, _ := within(t, time.Minute, "the second GET", second.opened).hears(); n != 1 {
			t.Errorf("it was told of %d changes, want 1", n)
		}
		s.close()
	})
}

// C-M3: Shutdown does not wait for streams whose clients disconnect while it begins.
func TestFindingCM3ShutdownWhileClientsLeave(t *testing.T) {
	for round := range 50 {
		synctest.Test(t, func(t *testing.T) {
			h := newHandler(t, tools(), nil)
			s := serve(t, h)
			var clients []context.CancelFunc
			for range 50 {
				ctx, leave := context.WithCancel(t.Context())
				clients = append(clients, leave)
				r := s.request(ctx, http.MethodGet, "", s.open("2025-11-25"))
				go h.ServeHTTP(httptest.NewRecorder(), r)
			}
			synctest.Wait()
			begin, ended := time.Now(), make(chan error, 1)
			for i, leave := range clients {
				if i == round {
					go func() { ended <- h.Shutdown(t.Context()) }()
				}
				leave()
			}
			if err := <-ended; err != nil || time.Since(begin) != 0 {
				t.Errorf("Shutdown returned %v after %v", err, time.Since(begin))
			}
			s.close()
		})
	}
}

// A stream whose client has left lingers for at most a minute, or until the client returns.
func TestFindingCM2LingeringEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSlowListen()
		s := serve(t, newHandler(t, h, nil))
		session := s.open("2025-11-25")
		var primed sse.Event
		for range 3 {
			get := s.get(with(session, header{"Last-Event-ID": primed.LastEventID}))
			r := within(t, time.Minute, "the GET", get.opened)
			wantAlive(t, r, h, time.Now().String())
			h.change("for its id " + time.Now().String())
			primed = <-r.events
			get.cancel()
			synctest.Wait()
			h.change("while it is away " + time.Now().String())
		}
		r := within(t, time.Minute, "the last GET", s.get(with(session, header{"Last-Event-ID": primed.LastEventID})).opened)
		if n, ended := r.hears(); n != 1 || ended {
			t.Errorf("it was told of %d changes, want 1; it has ended: %v", n, ended)
		}
		s.close()
	})
}

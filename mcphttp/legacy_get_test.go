// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// A client that resumes its standalone stream at another replica gets what changed while no
// replica listened for it.
func TestSharedOwnStreamGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		handlers, muxes := [2]*mcphttp.Handler{}, [2]*mcp.Mux{tools(), tools()}
		for i, mux := range muxes {
			handlers[i] = newHandler(t, mux, &mcphttp.Options{Store: shared, Heartbeat: -1})
		}
		one, two := serve(t, handlers[0]), serve(t, handlers[1])
		h := one.open("2025-11-25")
		own := read(t, one.do(one.request(t.Context(), "GET", "", h)))
		first, _ := own.next() // its id is where to come back to
		if err := handlers[0].Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		muxes[1].Tool("new", uncalled)
		<-time.After(time.Second)
		back := two.do(two.request(t.Context(), "GET", "", with(h, header{"Last-Event-ID": first.LastEventID})))
		if back.StatusCode == http.StatusNotFound {
			return // then the client knows that it may have missed something
		}
		again, heard := read(t, back), make(chan string, 8)
		go func() {
			for e, ok := again.next(); ok; e, ok = again.next() {
				if e.Data != "" {
					heard <- e.Data
				}
			}
		}()
		select {
		case got := <-heard:
			if !strings.Contains(got, mcp.NotificationToolsListChanged) {
				t.Errorf("heard %s", got)
			}
		case <-time.After(time.Minute):
			t.Error("a change was missed, and the client is not told that it may have been")
		}
	})
}

// The id with which a session's own stream begins stands for its beginning: a client
// that comes back with it gets all there was, or is told that not all is there any more.
func TestOwnStreamBegins(t *testing.T) {
	changed := func(mux *mcp.Mux, name string) {
		mux.Tool(name, uncalled)
		synctest.Wait()
	}
	const ttl = 10 * time.Minute
	for name, test := range map[string]struct {
		meanwhile func(mux *mcp.Mux)
		status    int
		want      int // changes that the client hears of when it comes back
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
				s := serve(t, newHandler(t, mux, &mcphttp.Options{Replay: store.Retention{TTL: ttl}, Heartbeat: -1}))
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

// T53: a client whose standalone stream has broken cannot be pinged, and is not taken for
// dead: not by the replica that goes on to listen for it, and not if it has come back to
// another one.
func TestKeepAliveWithoutClient(t *testing.T) {
	for name, comesBack := range map[string]bool{"it stays away": false, "it comes back to another replica": true} {
		bubble(t, name, func(t *testing.T) {
			var muxes [2]*mcp.Mux
			var sites [2]*site
			shared := store.NewMemory(nil)
			for i := range muxes {
				muxes[i] = tools()
				sites[i] = serve(t, newHandler(t, muxes[i], &mcphttp.Options{Store: shared, KeepAlive: 10 * time.Second, Heartbeat: -1}))
			}
			began, ended := waiting(muxes[0])
			h := sites[0].open("2025-11-25")
			ctx, leave := context.WithCancel(t.Context())
			own := read(t, sites[0].do(sites[0].request(ctx, http.MethodGet, "", h)))
			first, _ := own.next()
			send := func(s *site, body string) { _, _ = s.client.Do(s.request(t.Context(), http.MethodPost, body, h)) } // it may fail at the end
			go send(sites[0], call(1, "wait"))
			<-began
			leave()
			synctest.Wait()
			if comesBack {
				back := sites[1].comeBack(h, first.LastEventID)
				go func() {
					for e, ok := back.next(); ok; e, ok = back.next() {
						if strings.Contains(e.Data, `"ping"`) {
							send(sites[1], answer(questionID(t, e.Data), "{}"))
						}
					}
				}()
			}
			select {
			case err := <-ended:
				t.Errorf("its call has ended: %v", err)
			case <-time.After(10 * time.Minute):
			}
			for _, s := range sites {
				s.close()
			}
		})
	}
}

// A client may have come back to another replica before the connection of its standalone
// stream is known to be dead. No answer to the pings there does not end its session here.
func TestKeepAliveOfDeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		opts := mcphttp.Options{Store: store.NewMemory(nil), KeepAlive: 10 * time.Second, Heartbeat: -1, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		one, two := serve(t, newHandler(t, tools(), &opts)), serve(t, newHandler(t, tools(), &opts))
		h := one.open("2025-11-25")
		dead := read(t, one.do(one.request(t.Context(), http.MethodGet, "", h)))
		own := read(t, two.do(two.request(t.Context(), http.MethodGet, "", h)))
		pings := make(chan string)
		go func() {
			defer close(pings)
			for e, ok := own.next(); ok; e, ok = own.next() {
				if strings.Contains(e.Data, `"ping"`) {
					pings <- questionID(t, e.Data)
				}
			}
		}()
		for range 200 { // longer than it takes to notice that a session has ended
			two.post(answer(within(t, time.Minute, "a ping", pings), "{}"), h)
		}
		for _, ok := dead.next(); ok; _, ok = dead.next() {
			continue // until the replica has given it up
		}
		if got := answersHello(t, two, h); got != http.StatusOK {
			t.Errorf("a call: %d", got)
		}
		if got := strings.Count(log.String(), "does not answer"); got != 1 {
			t.Errorf("logged %d times:\n%s", got, log.String())
		}
		one.close()
		two.close()
		for range pings { // until its reader has ended
		}
	})
}

// panickingWriter is one of a middleware that gives up.
type panickingWriter struct{ *httptest.ResponseRecorder }

func (panickingWriter) Write([]byte) (int, error) { panic(http.ErrAbortHandler) }

// What a writer does when the session's own stream begins is no matter of the process:
// a panic there stays with the request.
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

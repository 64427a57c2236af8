// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// S10: a write deadline does not end an idle stream, including on HTTP/2, where deadlines
// end streams.
func TestFindingS10SilentStreamsLive(t *testing.T) {
	for _, proto := range []string{"HTTP/1", "HTTP/2"} {
		bubble(t, proto, func(t *testing.T) {
			mux := tools()
			opts := &mcphttp.Options{Heartbeat: -1, WriteTimeout: writeTimeout, Logger: quiet}
			streamable, sse := newHandler(t, mux, opts), mcphttp.NewSSEHandler(mux, opts)
			l := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Deprecated") != "" {
					sse.ServeHTTP(w, r)
					return
				}
				streamable.ServeHTTP(w, r)
			}), func(s *http.Server) { s.WriteTimeout, s.ReadTimeout = time.Second, time.Second })
			s := &site{t: t, client: l.Client()}
			if proto == "HTTP/2" {
				s = http2Client(t, l)
			}
			body, h := modern("subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`)
			session := s.open("2025-11-25")
			ctx, cancel := context.WithCancel(t.Context())
			deprecated := read(t, s.do(s.request(ctx, http.MethodGet, "", header{"Deprecated": "yes"})))
			deprecated.next()
			streams := []*reader{read(t, s.post(body, h)), read(t, s.do(s.request(ctx, http.MethodGet, "", session)))}
			for i := range 3 {
				for _, r := range streams {
					r.next()
				}
				<-time.After(time.Hour)
				if i < 2 {
					mux.Tool(fmt.Sprint("new", i), uncalled)
				}
			}
			for _, r := range append(streams, deprecated) {
				if _, ended := r.hears(); ended {
					t.Error("a silent stream has ended")
				}
			}
			cancel()
			s.client.CloseIdleConnections()
			_ = streamable.Shutdown(t.Context())
			_ = sse.Shutdown(t.Context())
		})
	}
}

// S10: a stream whose client reads too slowly ends, even if the client keeps reading a
// little.
func TestFindingS10TricklingReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := make(chan time.Duration, 1)
		h := newHandler(t, sized(tools(), 100_000), &mcphttp.Options{WriteTimeout: writeTimeout})
		conn := dialRaw(t, listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begin := time.Now()
			h.ServeHTTP(w, r)
			served <- time.Since(begin)
		})))
		body, head := callModern("sized")
		go func() {
			_, err := io.WriteString(conn, rawRequest(http.MethodPost, body, len(body), with(head, header{"Accept": "text/event-stream"})))
			for one := make([]byte, 1); err == nil; _, err = conn.Read(one) {
				<-time.After(time.Millisecond * 100)
			}
		}()
		if got := within(t, time.Hour, "the end of the answer", served); got != writeTimeout {
			t.Errorf("it took %v, want %v", got, writeTimeout)
		}
		_ = conn.Close()
		<-time.After(time.Second)
	})
}

// S10: an HTTP/2 client that does not read from its connection at all is handled by
// http.Server: with WriteByteTimeout set, its requests end.
func TestFindingS10HTTP2StuckConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, sized(tools(), 100_000), &mcphttp.Options{WriteTimeout: writeTimeout})
		served := make(chan struct{}, 100)
		l := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			served <- struct{}{}
		}), func(s *http.Server) { s.HTTP2 = &http.HTTP2Config{WriteByteTimeout: writeTimeout} })
		f := &frames{t, dialRaw(t, l), make(chan time.Time, 200)}
		go func() { _, _ = io.CopyN(io.Discard, f.conn, 60) }() // a part of the handshake
		go func() {
			body, head := callModern("sized")
			if _, err := io.WriteString(f.conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); err != nil {
				return
			}
			f.frame(frameSettings, 0, 0, nil)
			f.request(1, http.MethodPost, body, head)
		}()
		within(t, time.Hour, "the end of the request", served)
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// S8: whatever the interleaving of handshakes, calls and disconnects, the limits hold and
// nothing is leaked.
func TestFindingS8Churn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, nil)
		s := f.add(tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{Max: 20, MaxPerCaller: 5, Idle: time.Minute}})
		h := s.handler
		var all sync.WaitGroup
		for i := range 20 {
			caller := header{"User": fmt.Sprint(i % 7)}
			all.Go(func() {
				for range 10 {
					session := s.tryOpen(caller)
					if session == nil {
						continue
					}
					ctx, cancel := context.WithCancel(t.Context())
					for _, method := range []string{http.MethodGet, http.MethodPost} {
						body := ""
						if method == http.MethodPost {
							body = call(1, "ask")
						}
						if res, err := s.client.Do(s.request(ctx, method, body, session)); err == nil {
							defer res.Body.Close()
						}
					}
					cancel()
				}
			})
		}
		all.Wait()
		if got := count(h); got > 20 {
			t.Errorf("there are %d sessions, at most 20 are allowed", got)
		}
		<-time.After(3 * time.Hour) // until questions and idle sessions have expired
		if got := count(h); got != 0 {
			t.Errorf("%d sessions are left", got)
		}
		s.close()
	})
}

// C-M10: a client that asks for a stream that never existed is not kept waiting.
func TestFindingCM10StreamThatNeverWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFleet(t, nil).add(tools(), nil)
		session := s.open("2025-11-25")
		for _, id := range []string{"7-0", "7-7", "9223372036854775807-0"} {
			begin := time.Now()
			res := s.do(s.request(t.Context(), http.MethodGet, "", with(session, header{"Last-Event-ID": id})))
			if got := whole(t, res); strings.Contains(got.body, "data") && got.status == http.StatusOK || time.Since(begin) != 0 {
				t.Errorf("%s: after %v, %+v", id, time.Since(begin), got)
			}
		}
	})
}

// W18, INIT-06: a client starts to receive changes by sending notifications/initialized if
// it has only one stream, and by its GET if it opens one. Before that it receives none.
// After it, it misses none, even if the notification arrives later or at another replica.
// The server sends it notifications and pings, but no other requests.
func TestFindingW18InitializedOrGET(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		s := serve(t, newHandler(t, mux, &mcphttp.Options{Sessions: mcphttp.SessionOptions{KeepAlive: time.Minute}}))
		opened := whole(t, s.post(initialize("2025-11-25"), nil))
		session := header{"Mcp-Session-Id": opened.header.Get("Mcp-Session-Id"), "MCP-Protocol-Version": "2025-11-25"}
		mux.Tool("before", uncalled)
		own := read(t, s.do(s.request(t.Context(), http.MethodGet, "", session)))
		mux.Tool("after", uncalled)
		if got := own.message(); !strings.Contains(got, mcp.NotificationToolsListChanged) {
			t.Errorf("the first message is %s", got)
		}
		if got := own.message(); !strings.Contains(got, `"ping"`) {
			t.Errorf("the second message is %s", got)
		}
		s.close()
	})
}

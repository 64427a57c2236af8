// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// The delays before a client resumes a stream: half a second, doubled with each failure up
// to 30 seconds, and with each stream without a message up to five seconds.
func TestTransportReconnectDelays(t *testing.T) {
	seconds := func(all ...float64) (waits []time.Duration) {
		for _, s := range all {
			waits = append(waits, time.Duration(s*float64(time.Second)))
		}
		return waits
	}
	down := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // net/http would retry on a reused connection
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	times := func(n int, f http.HandlerFunc) (all []func(http.ResponseWriter, *http.Request)) {
		for range n {
			all = append(all, f)
		}
		return append(all, says(response7))
	}
	n := 0
	idle := func(w http.ResponseWriter, _ *http.Request) { n++; stream(w, fmt.Sprintf("id: x%d\n\n", n)) }
	lives := func(w http.ResponseWriter, _ *http.Request) { stream(w, ": \n"); <-time.After(10 * time.Second) }
	lived := func(w http.ResponseWriter, _ *http.Request) { stream(w, ": \n"); <-time.After(10*time.Second - 1) }
	for name, test := range map[string]struct {
		server resumption
		waits  []time.Duration
	}{
		"failures": {
			resumption{first: "id: a\ndata:\n\n", gets: times(4, down)}, seconds(.5, 1, 2, 4, 8),
		},
		"failures, with a delay of the server": {
			resumption{first: "id: a\nretry: 3000\ndata:\n\n", gets: times(4, down)}, seconds(3, 6, 12, 24, 30),
		},
		"a delay beyond all": {
			resumption{first: "id: a\nretry: 40000\ndata:\n\n", gets: times(2, down)}, seconds(40, 40, 40),
		},
		"nothing but IDs": {
			resumption{first: "id: a\ndata:\n\n", gets: times(4, idle)}, seconds(.5, 1, 2, 4, 5),
		},
		"streams that live": {
			resumption{first: "id: a\ndata:\n\n", gets: times(3, lives)}, seconds(.5, 10.5, 10.5, 10.5),
		},
		"streams that live not long enough": {
			resumption{first: "id: a\ndata:\n\n", gets: times(2, lived)}, []time.Duration{500 * time.Millisecond, 11*time.Second - 1, 12*time.Second - 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &test.server
				l := serve(t, s.handler()).link(nil)
				l.handshake("2025-11-25")
				l.call(toolCall(7, "2025-11-25", "a"))
				var waits []time.Duration
				for i := range s.times[1:] {
					waits = append(waits, s.times[i+1].Sub(s.times[i]))
				}
				if fmt.Sprint(waits) != fmt.Sprint(test.waits) {
					t.Errorf("it came back after %v, want %v", waits, test.waits)
				}
			})
		})
	}
}

// A client gives up after five consecutive attempts without anything new.
func TestTransportReconnectAttempts(t *testing.T) {
	for failures, good := range map[int]bool{4: true, 5: false} {
		synctest.Test(t, func(t *testing.T) {
			s := &resumption{first: "id: a\ndata:\n\n"}
			for range failures {
				s.gets = append(s.gets, says(": \n\n"))
			}
			s.gets = append(s.gets, says(response7))
			l := serve(t, s.handler()).link(nil)
			l.handshake("2025-11-25")
			if _, err := l.Call(t.Context(), toolCall(7, "2025-11-25", "a")); (err == nil) != good {
				t.Errorf("after %d failures: %v", failures, err)
			}
		})
	}
}

// hangs returns a server that never answers the requests for which when returns true.
func hangs(when func(*http.Request) bool, otherwise http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if when(r) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
		otherwise.ServeHTTP(w, r)
	})
}

func isMethod(method string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method }
}

// The handshake waits at most half a second for the standalone stream, and Close waits at
// most two seconds for the session to end.
func TestTransportHandshakeBounds(t *testing.T) {
	for method, wait := range map[string]struct{ handshake, close time.Duration }{
		"":                {0, 0},
		http.MethodGet:    {500 * time.Millisecond, 0},
		http.MethodDelete: {0, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := serve(t, hangs(isMethod(method), script{session: "s", del: refuses(http.StatusNoContent)})).link(nil)
			began := time.Now()
			l.handshake("2025-11-25")
			if took := time.Since(began); took != wait.handshake {
				t.Errorf("without an answer to %s, the handshake took %v, want %v", method, took, wait.handshake)
			}
			began = time.Now()
			_ = l.Close()
			if took := time.Since(began); took != wait.close {
				t.Errorf("without an answer to %s, Close took %v, want %v", method, took, wait.close)
			}
		})
	}
}

// A server that rejects initialize has five seconds to show that it speaks HTTP+SSE.
func TestTransportFallbackBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		l := serve(t, hangs(isMethod(http.MethodGet), http.HandlerFunc(refuses(http.StatusNotFound)))).link(nil)
		if _, err := l.Call(t.Context(), opening(0, "2025-11-25")); err == nil {
			t.Error("there is a session")
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the attempt took %v", took)
		}
	})
}

// After the response, a stream is read for at most a second.
func TestTransportDrainTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered, left := time.Now(), make(chan time.Duration, 1)
		l := serve(t, script{post: func(w http.ResponseWriter, r *http.Request) {
			stream(w, response7)
			answered = time.Now()
			<-r.Context().Done()
			left <- time.Since(answered)
		}}).link(nil)
		l.call(toolCall(7, mcp.LatestVersion, "a"))
		if took := <-left; took != time.Second {
			t.Errorf("the rest of the stream was read for %v", took)
		}
	})
}

// If a server does not accept the notification that a call is cancelled, the client stops
// waiting after five seconds.
func TestTransportCancelBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := make(chan time.Duration, 1)
		s := serve(t, script{session: "s"})
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Body == nil {
				return s.client.Transport.RoundTrip(r)
			}
			body, _ := io.ReadAll(r.Body)
			switch {
			case strings.Contains(string(body), mcp.NotificationCancelled):
				began := time.Now()
				<-r.Context().Done()
				took <- time.Since(began)
			case strings.Contains(string(body), mcp.MethodCallTool):
				<-r.Context().Done()
			default:
				r.Body = io.NopCloser(bytes.NewReader(body))
				return s.client.Transport.RoundTrip(r)
			}
			return nil, r.Context().Err()
		})}
		l := s.link(&mcphttp.TransportOptions{Client: client})
		l.handshake("2025-11-25")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Call(ctx, toolCall(7, "2025-11-25", "a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call ended with %v", err)
		}
		if got := <-took; got != 5*time.Second {
			t.Errorf("it was tried for %v", got)
		}
	})
}

// Concurrent calls that find their session lost wait for one handshake and are then sent
// again.
func TestLostSessionOfManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, tools(), nil)
		v := &visits{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Session-Id") == "" {
				<-time.After(time.Second) // the duration of a handshake
			}
			h.ServeHTTP(w, r)
		})}
		s := serve(t, v)
		conn, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: "2025-11-25", Logger: quiet}).
			Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
		if err != nil {
			t.Fatal(err)
		}
		for session := range h.Sessions() {
			session.Close()
		}
		synctest.Wait()
		called := make(chan error, 5)
		for range 5 {
			go func() {
				_, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"})
				called <- err
			}()
		}
		for range 5 {
			if err := within(t, time.Minute, "the end of a call", called); err != nil {
				t.Error(err)
			}
		}
		if n := len(v.of(http.MethodPost, `"initialize"`)); n != 2 {
			t.Errorf("%d handshakes were made", n)
		}
		_ = conn.Close()
		s.close()
	})
}

// A server that keeps losing its sessions makes the client open new ones, but not
// immediately and not at an increasing rate.
func TestFindingS27LostSessionsHaveAFloor(t *testing.T) {
	for _, pings := range []int{http.StatusOK, http.StatusNotFound} {
		synctest.Test(t, func(t *testing.T) {
			var requests atomic.Int64
			s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := requests.Add(1)
				body, _ := io.ReadAll(r.Body)
				m, _ := transport.ParseMessage(body)
				switch {
				case m.Method == "":
					w.WriteHeader(http.StatusNotFound)
				case m.Method == "initialize":
					w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", n))
					say(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID))
				case m.IsNotification():
					w.WriteHeader(http.StatusAccepted)
				case pings == http.StatusOK:
					say(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
				default:
					w.WriteHeader(pings)
				}
			}))
			conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: quiet, Version: "2025-11-25"}).
				Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(10 * time.Minute)
			if n := requests.Load(); n > 200 {
				t.Errorf("%d requests", n)
			}
			_ = conn.Close()
		})
	}
}

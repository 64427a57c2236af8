// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// A heartbeat that finds the client gone, before anything else was sent on the stream of its
// call, has no other effect.
func TestFirstHeartbeatToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		done := make(chan struct{})
		mux.Tool("long", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
			<-time.After(time.Hour)
			close(done)
			return "", nil
		}, nil))
		s := serve(t, newHandler(t, mux, &mcphttp.Options{Heartbeat: time.Minute, Logger: quiet}))
		h := s.open(mcp.LegacyVersions()[0])
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = s.client.Do(s.request(ctx, "POST", call(1, "long"), h)) }()
		synctest.Wait()
		cancel()
		<-done
		if got := whole(t, s.post(call(2, "hello"), h)); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

// Each stream has its own heartbeat, whatever other streams start and end.
func TestHeartbeatsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newHandler(t, tools(), &mcphttp.Options{Heartbeat: time.Minute}))
		begin := time.Now()
		get := func(ctx context.Context) *http.Response {
			return s.do(s.request(ctx, http.MethodGet, "", s.open(mcp.LegacyVersions()[0])))
		}
		beats := func(res *http.Response, n int) (at []time.Duration) {
			for lines := bufio.NewScanner(res.Body); len(at) < n && lines.Scan(); {
				if strings.HasPrefix(lines.Text(), ":") {
					at = append(at, time.Since(begin))
				}
			}
			return at
		}
		gone, leave := context.WithCancel(t.Context())
		get(gone)
		<-time.After(10 * time.Second)
		leave()
		first := get(t.Context())
		<-time.After(20 * time.Second)
		second := get(t.Context())
		got := make(chan []time.Duration)
		go func() { got <- beats(first, 4) }()
		want := []time.Duration{30 * time.Second, 90 * time.Second, 150 * time.Second}
		if at := beats(second, 3); !slices.Equal(at, want) {
			t.Errorf("the second stream had its heartbeats at %v, want %v", at, want)
		}
		want = []time.Duration{10 * time.Second, 70 * time.Second, 130 * time.Second, 190 * time.Second}
		// The first heartbeat was written before its reader started.
		if at := <-got; len(at) != 4 || !slices.Equal(at[1:], want[1:]) {
			t.Errorf("the first stream had its heartbeats at %v, want %v", at, want)
		}
		s.close()
	})
}

// A ResponseWriter that panics affects only its own request, including on the goroutines
// that write heartbeats and the first bytes of a standalone stream.
func TestHeartbeatWriterPanics(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, "2025-11-25", "2025-06-18"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged bytes.Buffer
				mux := tools()
				mux.Tool("long", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
					<-time.After(time.Hour)
					return "", nil
				}, nil))
				opts := &mcphttp.Options{Heartbeat: time.Minute, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
				handler := newHandler(t, mux, opts)
				s := serve(t, handler)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				body, head := callModern("long")
				method := http.MethodPost
				if version != mcp.LatestVersion {
					method, body, head = http.MethodGet, "", s.open(version)
				}
				r := s.request(ctx, method, body, head)
				r.RequestURI = "/"
				func() {
					defer func() { _ = recover() }() // as net/http does
					handler.ServeHTTP(panickingWriter{httptest.NewRecorder()}, r)
				}()
				if !strings.Contains(logged.String(), "panicked") { // the process continues
					t.Errorf("logged was %q", logged.String())
				}
			})
		})
	}
}

// closedWriter is a ResponseWriter of middleware that notices immediately that its client
// has disconnected.
type closedWriter struct{ *httptest.ResponseRecorder }

func (closedWriter) Write([]byte) (int, error) { return 0, net.ErrClosed }

// The first heartbeat of a stream writes two events. If the client is gone when it writes
// the first, it does not write the second.
func TestHeartbeatWriterBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux, log := tools(), new(logged)
		mux.Tool("long", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
			<-time.After(time.Hour)
			return "", nil
		}, nil))
		handler := newHandler(t, mux, &mcphttp.Options{Heartbeat: time.Minute, Logger: slog.New(slog.NewTextHandler(log, nil))})
		s := serve(t, handler)
		handler.ServeHTTP(closedWriter{httptest.NewRecorder()}, s.request(t.Context(), http.MethodPost, call(1, "long"), s.open("2025-11-25")))
		if got := log.String(); got != "" {
			t.Errorf("the log is %s", got)
		}
	})
}

// hooked is a ResponseWriter that calls a function before each write.
type hooked struct {
	*httptest.ResponseRecorder
	before func(part string)
}

func (w *hooked) Write(p []byte) (int, error) {
	w.before(string(p))
	return w.ResponseRecorder.Write(p)
}

// waitFor waits until a goroutine runs a function or, if gone is set, until none does.
func waitFor(function string, gone bool) {
	for buf := make([]byte, 1<<20); ; runtime.Gosched() {
		if strings.Contains(string(buf[:runtime.Stack(buf, true)]), function) != gone {
			return
		}
	}
}

// Mutation 57: nothing is written after the response, even if a heartbeat became due while
// it was written.
func TestFindingM57NoHeartbeatAfterTheAnswer(t *testing.T) {
	const heartbeat = "mcphttp.(*eventWriter).Beat("
	h := newHandler(t, tools(), &mcphttp.Options{Heartbeat: time.Millisecond})
	body, head := callModern("hello")
	for range 10 {
		var written []string
		w := &hooked{httptest.NewRecorder(), func(part string) {
			written = append(written, part)
			if strings.Contains(part, "hello") {
				waitFor(heartbeat, false)
			}
		}}
		s := &site{t: t}
		h.ServeHTTP(w, s.request(t.Context(), http.MethodPost, body, head))
		waitFor(heartbeat, true)
		if len(written) == 0 || !strings.Contains(written[len(written)-1], "hello") {
			t.Fatalf("written were %q", written)
		}
	}
}

// Mutation 59: a stream that ends during a heartbeat has no further heartbeat, and nothing
// refers to it.
func TestFindingM59HeartbeatsEnd(t *testing.T) {
	h := newHandler(t, tools(), &mcphttp.Options{Heartbeat: time.Millisecond})
	left := weak.Make(serveUntilHeartbeat(t, h))
	for range 100 {
		runtime.GC()
		if left.Value() == nil {
			return
		}
	}
	t.Error("the response is still in use")
}

// serveUntilHeartbeat serves the standalone stream of a session, which ends during a
// heartbeat of the stream, and returns the response.
func serveUntilHeartbeat(t *testing.T, h *mcphttp.Handler) *hooked {
	t.Helper()
	s := &site{t: t}
	open := httptest.NewRecorder()
	h.ServeHTTP(open, s.request(t.Context(), http.MethodPost, initialize("2025-11-25"), nil))
	session := header{"Mcp-Session-Id": open.Header().Get("Mcp-Session-Id")}
	h.ServeHTTP(httptest.NewRecorder(), s.request(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session))
	beating, released := make(chan struct{}), make(chan struct{})
	var once sync.Once
	head := true
	w := &hooked{httptest.NewRecorder(), func(part string) {
		if !strings.Contains(part, "keep-alive") {
			return
		}
		if head { // the first keep-alive is sent with the header
			head = false
			return
		}
		once.Do(func() { close(beating) })
		<-released
	}}
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.ServeHTTP(w, s.request(context.Background(), http.MethodGet, "", session))
	}()
	<-beating
	for s := range h.Sessions() {
		s.Close()
	}
	waitFor("mcphttp.(*inFlightList).remove(", false)
	close(released)
	<-served
	waitFor("mcphttp.(*inFlightList).beatOnce(", true)
	return w
}

// The server keeps nothing of completed requests, even while their session has a stream.
func TestRequestsAreForgotten(t *testing.T) {
	h := newHandler(t, tools(), nil)
	var last weak.Pointer[http.Request]
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			last = weak.Make(r)
		}
		h.ServeHTTP(w, r)
	}))
	session := s.open("2025-11-25")
	read(t, s.do(s.request(t.Context(), http.MethodGet, "", session))).next()
	body, modern := callModern("hello")
	for name, r := range map[string]*http.Request{
		"in a session": s.request(t.Context(), http.MethodPost, call(1, "hello"), session),
		"in none":      s.request(t.Context(), http.MethodPost, body, modern),
	} {
		r.Close = true
		whole(t, s.do(r))
		untilCollected(t, "the request "+name, last)
	}
}

// untilCollected waits until a value has been garbage collected.
func untilCollected[T any](t *testing.T, what string, p weak.Pointer[T]) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); p.Value() != nil; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("%s is still in use", what)
		}
	}
}

// slowPrincipal is a context in which looking up the principal blocks.
type slowPrincipal struct {
	context.Context
	asked, told chan struct{}
	once        *sync.Once
}

func (c slowPrincipal) Value(key any) any {
	if fmt.Sprintf("%T", key) == "mcphttp.principalKey" {
		c.once.Do(func() { close(c.asked) })
		<-c.told
	}
	return c.Context.Value(key)
}

// Mutation 62: a call that starts after Shutdown has stopped waiting is cancelled like
// earlier ones.
func TestFindingM62LateCallIsCancelled(t *testing.T) {
	mux := tools()
	began, ended := waiting(mux)
	h := newHandler(t, mux, nil)
	body, head := callModern("wait")
	ctx := slowPrincipal{t.Context(), make(chan struct{}), make(chan struct{}), new(sync.Once)}
	s := &site{t: t}
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.ServeHTTP(httptest.NewRecorder(), s.request(ctx, http.MethodPost, body, head))
	}()
	<-ctx.asked
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Shutdown(over); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown returned %v", err)
	}
	close(ctx.told)
	<-began
	if err := within(t, time.Minute, "the cancellation", ended); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("cancelled by %v", err)
	}
	<-served
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// A heartbeat that finds the client gone before anything else was said on the stream
// of its call ends nothing but itself.
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

// Each stream has a heartbeat of its own, whatever other streams start and end.
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
		// Who reads late gets what was written at once.
		if at := <-got; len(at) != 4 || !slices.Equal(at[1:], want[1:]) {
			t.Errorf("the first stream had its heartbeats at %v, want %v", at, want)
		}
		s.close()
	})
}

// A response writer that panics harms its own request only, also on the goroutines of
// heartbeats and of the first bytes of a session's own stream.
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
				if !strings.Contains(logged.String(), "panicked") { // the process goes on
					t.Errorf("logged was %q", logged.String())
				}
			})
		})
	}
}

// closedWriter is one of a middleware that notices at once that its client has gone.
type closedWriter struct{ *httptest.ResponseRecorder }

func (closedWriter) Write([]byte) (int, error) { return 0, net.ErrClosed }

// The first heartbeat of a stream writes two events. It does not write the second one if
// the client is gone when it writes the first one.
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

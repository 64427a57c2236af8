// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Serve serves h on a loopback port until the test ends, and returns its URL, such as
// "http://127.0.0.1:41234". Use it to test a whole router, including authentication and
// routes. Use [Dial] to connect to an endpoint below the URL.
//
// When the test ends, Serve closes all connections, which cancels the contexts of the
// requests in flight, and waits for these requests. The test fails if a request has not ended
// after 10 seconds. In contrast, httptest.Server.Close waits indefinitely for streams that a
// client keeps open, such as the stream of a legacy session.
func Serve(tb testing.TB, h http.Handler) (url string) {
	tb.Helper()
	return ServeFunc(tb, func(string) http.Handler { return h })
}

// ServeFunc is like Serve, but for a handler that needs to know its URL, for example because
// it publishes metadata.
func ServeFunc(tb testing.TB, newHandler func(url string) http.Handler) (url string) {
	tb.Helper()
	if newHandler == nil {
		tb.Fatal("mcptest: ServeFunc: the function is nil")
	}
	s := httptest.NewUnstartedServer(nil)
	url = "http://" + s.Listener.Addr().String()
	requests := &requestsInFlight{handler: newHandler(url), count: map[string]int{}}
	s.Config.Handler = requests
	s.Config.ErrorLog = slog.NewLogLogger(logger(tb).Handler(), slog.LevelError)
	s.Start()
	tb.Cleanup(func() {
		_ = s.Config.Close() // s.Close would wait for the requests
		if left := requests.wait(); left != "" {
			tb.Errorf("mcptest: requests do not end when their context is cancelled: %s", left)
		}
	})
	return url
}

// closeTimeout limits how long a server may take to shut down.
const closeTimeout = 10 * time.Second

// requestsInFlight forwards requests to handler, and counts those in flight.
type requestsInFlight struct {
	handler http.Handler

	mu    sync.Mutex
	count map[string]int // by method and path
	idle  chan struct{}  // closed when the last request ends; nil unless wait is waiting
}

func (f *requestsInFlight) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.Method + " " + r.URL.Path
	f.add(name, 1)
	defer f.add(name, -1)
	f.handler.ServeHTTP(w, r)
}

func (f *requestsInFlight) add(name string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count[name] += n; f.count[name] == 0 {
		delete(f.count, name)
	}
	if len(f.count) == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
}

// wait waits up to closeTimeout for all requests to end. It returns the names of the
// remaining ones.
func (f *requestsInFlight) wait() (left string) {
	idle := make(chan struct{})
	f.mu.Lock()
	f.idle = idle
	none := len(f.count) == 0
	f.mu.Unlock()
	if none {
		return ""
	}
	select {
	case <-idle:
		return ""
	case <-time.After(closeTimeout):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(f.count)), ", ")
}

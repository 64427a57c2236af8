// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// T10: Shutdown ends subscriptions and streams cleanly, waits for requests until its context
// is done, and returns.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		began, ended := waiting(mux)
		mux.Tool("soon", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
			began <- struct{}{}
			<-time.After(2 * time.Second)
			return "in time", nil
		}, nil))
		h := newHandler(t, mux, nil)
		s := serve(t, h)
		legacy := s.open("2025-11-25")
		get := read(t, s.do(s.request(t.Context(), http.MethodGet, "", legacy)))
		get.next()
		body, listen := modern("subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`)
		listening := read(t, s.post(body, listen))
		listening.message()
		soon, never := make(chan reply, 1), make(chan reply, 1)
		go func() { soon <- whole(t, s.post(call(1, "soon"), legacy)) }()
		<-began
		go func() { body, h := callModern("wait"); never <- whole(t, s.post(body, h)) }()
		<-began

		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if err := h.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("Shutdown returned %v after %v", err, time.Since(start))
		}
		if got := listening.message(); !strings.Contains(got, `"result":{"resultType":"complete"`) || !strings.Contains(got, "subscriptionId") {
			t.Errorf("the subscription ended with %s", got)
		}
		if _, ok := get.next(); ok {
			t.Error("the session's stream goes on")
		}
		if res := <-soon; !strings.Contains(res.body, "in time") {
			t.Errorf("a request that could finish: %s", res.body)
		}
		if err := <-ended; !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("a request that could not was cancelled by %v", err)
		}
		<-never
		body, after := callModern("hello")
		if res := s.post(body, after); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a request after Shutdown: %d", res.StatusCode)
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Errorf("a second Shutdown returned %v", err)
		}
		s.close()
	})
}

// A request that outlives Shutdown, because the store is slow, restores no session: nothing
// would end it.
func TestShutdownRestoresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &faulty{Values: store.NewMemory(nil)}
		f := newFleet(t, shared)
		h, s := f.add(tools(), nil).open("2025-11-25"), f.add(tools(), nil)
		late, held := s.handler, make(chan struct{})
		hold := func(context.Context) error { <-held; return nil }
		shared.read.Store(&hold)
		answer := make(chan reply, 1)
		go func() { answer <- whole(t, s.post(call(1, "hello"), h)) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := late.Shutdown(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown returned %v", err)
		}
		close(held)
		if res := <-answer; res.status != http.StatusServiceUnavailable {
			t.Errorf("the late request was answered with %d", res.status)
		}
		for range late.Sessions() {
			t.Error("a session is left")
		}
	})
}

// A Router combines the endpoints.
func TestRouter(t *testing.T) {
	r := mcphttp.NewRouter(tools(), &mcphttp.RouterOptions{Options: &mcphttp.Options{Logger: quiet}})
	s := serve(t, r)
	body, h := callModern("hello")
	if res := s.post(body, h); res.StatusCode != http.StatusOK {
		t.Errorf("/mcp: %d", res.StatusCode)
	}
	health := func() int {
		req := s.request(t.Context(), http.MethodGet, "", nil)
		req.URL.Path = "/healthz"
		return s.do(req).StatusCode
	}
	if got := health(); got != 200 {
		t.Errorf("/healthz: %d", got)
	}
	if err := r.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := health(); got != 503 {
		t.Errorf("/healthz after Shutdown: %d", got)
	}
}

// A Router serves its endpoints also with a slash at the end, inside the same middleware and
// without a redirect, which clients do not follow.
func TestFindingR25RouterServesTrailingSlashes(t *testing.T) {
	guarded := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	r := mcphttp.NewRouter(tools(), &mcphttp.RouterOptions{Options: &mcphttp.Options{Logger: quiet}, Middleware: []func(http.Handler) http.Handler{guarded}})
	s := serve(t, r)
	body, h := callModern("hello")
	for path, want := range map[string]int{"/mcp": 200, "/mcp/": 200, "/mcp//": 404, "/mcp/x": 404, "/sse": 404, "/sse/": 404} { // 404: there is no such session
		for _, token := range []string{"", "Bearer x"} {
			req := s.request(t.Context(), http.MethodPost, body, with(h, header{"Authorization": token}))
			req.URL.Path = path
			want := want
			if isEndpoint := strings.Count(path, "/") < 3 && path != "/mcp/x"; token == "" && isEndpoint {
				want = http.StatusUnauthorized
			}
			if res := s.do(req); res.StatusCode != want {
				t.Errorf("%s, token %q: %d, want %d", path, token, res.StatusCode, want)
			}
		}
	}
	if err := r.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// A health check may send HEAD, as wget --spider does.
func TestFindingR26HealthHEAD(t *testing.T) {
	r := mcphttp.NewRouter(tools(), &mcphttp.RouterOptions{Options: &mcphttp.Options{Logger: quiet}})
	s := serve(t, r)
	health := func() int {
		req := s.request(t.Context(), http.MethodHead, "", nil)
		req.URL.Path = "/healthz"
		return s.do(req).StatusCode
	}
	if got := health(); got != http.StatusOK {
		t.Errorf("%d", got)
	}
	if err := r.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := health(); got != http.StatusServiceUnavailable {
		t.Errorf("after Shutdown: %d", got)
	}
}

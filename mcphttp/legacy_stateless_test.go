// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

var stateless = &mcphttp.Options{Heartbeat: -1, Sessions: mcphttp.SessionOptions{Stateless: true}}

// Without sessions, every request of an older client stands for itself: no ID is given out,
// and one that a platform has chosen is ignored.
func TestStateless(t *testing.T) {
	for _, version := range mcp.LegacyVersions() {
		for name, h := range map[string]header{"plain": {}, "session of a platform": {"Mcp-Session-Id": "0d7c", "MCP-Protocol-Version": version}} {
			bubble(t, version+" "+name, func(t *testing.T) {
				handler := newHandler(t, tools(), stateless)
				s := serve(t, handler)
				opened := whole(t, s.post(initialize(version), h))
				if id := opened.header.Get("Mcp-Session-Id"); opened.status != http.StatusOK || id != "" || !strings.Contains(opened.body, version) {
					t.Errorf("a handshake: %d %s, session %q", opened.status, opened.body, id)
				}
				if got := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, h).StatusCode; got != http.StatusAccepted {
					t.Errorf("a notification: %d", got)
				}
				if got := answersHello(t, s, h); got != http.StatusOK {
					t.Errorf("a call: %d", got)
				}
				if got := whole(t, s.post(call(2, "steps"), h)).body; !strings.Contains(got, `"progress":2`) || !strings.Contains(got, "done") || strings.Contains(got, "id: ") {
					t.Errorf("a call with events that have no ID: %s", got)
				}
				if got := whole(t, s.post(call(3, "ask"), h)).body; !strings.Contains(got, "capability") || strings.Contains(got, "elicitation/create") {
					t.Errorf("a call that asks: %s", got)
				}
				if got := whole(t, s.post(subscribe("test://doc"), h)).body; !strings.Contains(got, "keeps no sessions") {
					t.Errorf("a subscription: %s", got)
				}
				for _, method := range []string{http.MethodGet, http.MethodDelete} {
					if got := s.do(s.request(t.Context(), method, "", h)); got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "POST, OPTIONS" {
						t.Errorf("%s: %d, allowed are %s", method, got.StatusCode, got.Header.Get("Allow"))
					}
				}
				if n := count(handler); n != 0 {
					t.Errorf("there are %d sessions", n)
				}
				s.close()
			})
		}
	}
}

// Clients of all revisions work without sessions.
func TestStatelessClients(t *testing.T) {
	for _, version := range append(mcp.LegacyVersions(), mcp.LatestVersion) {
		if version == "2024-11-05" {
			continue // it has another transport
		}
		bubble(t, version, func(t *testing.T) {
			s := serve(t, newHandler(t, tools(), stateless))
			c, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: version, Logger: quiet}).Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if got, err := mcp.Call[string](t.Context(), c, "hello", struct{}{}); got != "hello" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			}
			if got, err := c.ListTools(t.Context(), nil); err != nil || len(got.Tools) != 3 {
				t.Errorf("got %v, %v", got, err)
			}
			_ = c.Close()
			s.close()
		})
	}
}

// Nobody can come back to a call without a session, so it ends with its connection.
func TestStatelessCallEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		began, ended := waiting(mux)
		s := serve(t, newHandler(t, mux, stateless))
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			if res, err := s.client.Do(s.request(ctx, http.MethodPost, call(1, "wait"), nil)); err == nil {
				_ = res.Body.Close()
			}
		}()
		<-began
		leave()
		within(t, time.Minute, "the end of the call", ended)
		s.close()
	})
}

// Shared sessions without sessions are a mistake.
func TestStatelessAndShared(t *testing.T) {
	defer func() {
		if got, _ := recover().(string); !strings.Contains(got, "Stateless and Shared exclude each other") {
			t.Errorf("the panic is %q", got)
		}
	}()
	mcphttp.NewHandler(tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{Stateless: true, Shared: &mcphttp.SharedSessions{}}})
}

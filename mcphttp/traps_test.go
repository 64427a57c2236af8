// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"context"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcphttp"
)

// inBubbles returns the number of goroutines in synctest bubbles. runtime.NumGoroutine also
// counts goroutines of the runtime, which come and go.
func inBubbles() int {
	stacks := make([]byte, 8<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ", synctest bubble ")
}

// T13: clients that connect in any way and never disconnect leave nothing behind after they
// time out.
func TestTrap13NothingIsLeftOfVisitors(t *testing.T) {
	visitors := map[string]func(t *testing.T, s *site){
		"a handshake and no DELETE": func(_ *testing.T, s *site) { s.open("2025-11-25") },
		"discovery": func(t *testing.T, s *site) {
			t.Helper()
			whole(t, s.post(modern("server/discover", "", "")))
		},
		"a handshake in an unknown version": func(t *testing.T, s *site) {
			t.Helper()
			whole(t, s.post(initialize("1999-01-01"), nil))
		},
		"a stateless call": func(t *testing.T, s *site) {
			t.Helper()
			whole(t, s.post(callModern("hello")))
		},
		"a stream that is cut off": func(t *testing.T, s *site) {
			t.Helper()
			h := s.open("2025-11-25")
			ctx, cancel := context.WithCancel(t.Context())
			res := s.do(s.request(ctx, http.MethodGet, "", h))
			cancel()
			_ = res.Body.Close()
		},
	}
	for name, visit := range visitors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := newHandler(t, tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{Idle: 10 * time.Minute}})
				s := serve(t, handler)
				visit(t, s)
				settle := func() int {
					<-time.After(time.Hour)
					s.client.CloseIdleConnections()
					synctest.Wait()
					return inBubbles()
				}
				before := settle()
				for range 1000 {
					visit(t, s)
				}
				if after := settle(); after > before || len(slices.Collect(handler.Sessions())) > 0 {
					t.Errorf("%d goroutines before, %d after; %d sessions are left", before, after, len(slices.Collect(handler.Sessions())))
				}
				s.close()
			})
		})
	}
}

// T24: idle streams are kept alive, too.
func TestTrap24IdleStreamsBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newHandler(t, tools(), &mcphttp.Options{Heartbeat: 15 * time.Second}))
		legacy := s.open("2025-11-25")
		body, h := modern("subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`)
		for name, open := range map[string]func(ctx context.Context) *http.Request{
			"GET":    func(ctx context.Context) *http.Request { return s.request(ctx, http.MethodGet, "", legacy) },
			"listen": func(ctx context.Context) *http.Request { return s.request(ctx, http.MethodPost, body, h) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			beats := 0
			for lines := bufio.NewScanner(s.do(open(ctx)).Body); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), ":") {
					beats++
				}
			}
			cancel()
			if beats < 7 {
				t.Errorf("%s: %d comments in two minutes, want at least 7", name, beats)
			}
		}
		s.close()
	})
}

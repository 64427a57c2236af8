// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// X2: a call whose client has left does not keep its connection, and only a limited number
// of such calls go on.
func TestFindingX2AbsentClients(t *testing.T) {
	for name, accept := range map[string]string{"events": "application/json, text/event-stream", "JSON": "application/json"} {
		bubble(t, name, func(t *testing.T) {
			mux := tools()
			began := make(chan struct{})
			var cancelled atomic.Int32
			mux.Tool("hold", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
				began <- struct{}{}
				<-ctx.Done()
				cancelled.Add(1)
				return "", context.Cause(ctx)
			}, nil))
			h := newHandler(t, mux, nil)
			var mu sync.Mutex
			states := map[http.ConnState]int{}
			s := serve(t, h, func(server *http.Server) {
				server.ConnState = func(_ net.Conn, state http.ConnState) {
					mu.Lock()
					defer mu.Unlock()
					states[state]++
				}
			})
			session := s.open("2025-11-25")
			for i := range 40 {
				ctx, leave := context.WithCancel(t.Context())
				go func() {
					if res, err := s.client.Do(s.request(ctx, http.MethodPost, call(100+i, "hold"), with(session, header{"Accept": accept}))); err == nil {
						_ = res.Body.Close()
					}
				}()
				<-began
				leave()
				synctest.Wait()
			}
			mu.Lock()
			if got := states[http.StateHijacked]; got < 32 || got+states[http.StateClosed] != 40 {
				t.Errorf("%d connections were taken over and %d closed, want 40, at least 32 of them while their calls go on", got, states[http.StateClosed])
			}
			mu.Unlock()
			if got := cancelled.Load(); got != 40-32 {
				t.Errorf("%d calls were cancelled, want 8", got)
			}
			if got := answersHello(t, s, session); got != http.StatusOK {
				t.Errorf("a call of a client that waits: %d", got)
			}
			s.close()
		})
	}
}

// X2: a client that comes back is not absent, so that its call is not one of the limited
// number.
func TestFindingX2ClientsThatComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		goOn := make(chan struct{})
		mux.Tool("leave", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			if err := mcphttp.CloseStream(ctx); err != nil { // which also announces it, so that no request is sent on this connection
				return "", err
			}
			mcp.Progress(ctx, 1, 2, "")
			<-goOn
			return "polled", ctx.Err()
		}, nil))
		s := serve(t, newHandler(t, mux, nil))
		session := s.open("2025-11-25")
		var streams []*reader
		for i := range 40 {
			primed, _ := read(t, s.post(call(i, "leave"), session)).next() // the server closes the connection
			back := s.comeBack(session, primed.LastEventID)
			back.message()
			streams = append(streams, back)
		}
		close(goOn)
		for _, back := range streams {
			if got := back.message(); !strings.Contains(got, "polled") {
				t.Errorf("a call ends with %s", got)
			}
		}
		s.close()
	})
}

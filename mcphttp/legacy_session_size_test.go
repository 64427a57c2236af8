// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// The tests in this file are about the bytes that a session keeps of what its client sent.

// introduce returns an initialize request with these members.
func introduce(clientInfo, capabilities string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":%s}}`, capabilities, clientInfo)
}

// A handshake of which a session would keep too much is refused and opens no session. At most
// 16 KiB are kept.
func TestFindingX1HandshakesAreBounded(t *testing.T) {
	const limit, base = 16 << 10, len(`{}`) + len(`{"name":"","version":"1"}`)
	named := func(n int) string { return fmt.Sprintf(`{"name":%q,"version":"1"}`, strings.Repeat("n", n)) }
	s := serve(t, newHandler(t, tools(), nil))
	for name, body := range map[string]string{
		"clientInfo":   introduce(named(limit-base+1), `{}`),
		"an extension": introduce(named(1), `{"extensions":{"example.com/x":{"a":"`+strings.Repeat("x", limit)+`"}}}`),
		"experimental": introduce(named(1), `{"experimental":{"x":{"a":"`+strings.Repeat("x", limit)+`"}}}`),
	} {
		res := whole(t, s.post(body, nil))
		if res.code(t) != mcp.CodeInvalidParams || res.header.Get("Mcp-Session-Id") != "" || !strings.Contains(res.body, "at most 16384") {
			t.Errorf("%s: %d %v %.300s", name, res.status, res.header, res.body)
		}
	}
	if res := whole(t, s.post(introduce(named(limit-base), `{}`), nil)); res.code(t) != 0 {
		t.Errorf("the largest handshake: %d %.300s", res.status, res.body)
	}
}

// Large icons do not keep a client out: they are left out of what the session keeps.
func TestFindingX1LargeIconsAreLeftOut(t *testing.T) {
	var logged bytes.Buffer
	h := newHandler(t, tools(), &mcphttp.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	s := serve(t, h)
	icon := `data:image/png;base64,` + strings.Repeat("A", 1<<20)
	res := whole(t, s.post(introduce(`{"name":"painter","version":"1","icons":[{"src":"`+icon+`"}]}`, `{}`), nil))
	if res.code(t) != 0 {
		t.Fatalf("%d %.300s", res.status, res.body)
	}
	s.post(introduce(`{"name":"painter","version":"1","icons":[{"src":"`+icon+`"}]}`, `{}`), nil)
	for session := range h.Sessions() {
		if info := session.ClientInfo(); info.Name != "painter" || len(info.Icons) != 0 {
			t.Errorf("the session keeps %.300v", info)
		}
	}
	if strings.Count(logged.String(), "icons") != 1 {
		t.Errorf("logged: %s", logged.String())
	}
}

// HTTP+SSE has the same limit.
func TestFindingX1HandshakesAreBoundedOverSSE(t *testing.T) {
	s := serve(t, newSSEHandler(t, tools()))
	stream := read(t, s.do(s.request(t.Context(), http.MethodGet, "", header{"Accept": "text/event-stream"})))
	first, _ := stream.next()
	_, s.query, _ = strings.Cut(first.Data, "?")
	s.post(introduce(`{"name":"`+strings.Repeat("n", 1<<20)+`","version":"1"}`, `{}`), nil)
	if got := stream.message(); !strings.Contains(got, `"code":-32602`) {
		t.Errorf("answered with %.300s", got)
	}
}

// subscribed subscribes to a resource whose URI has a number of bytes, and returns the code of
// the error, or 0.
func (s *site) subscribed(session header, number, size int) int {
	s.t.Helper()
	uri := fmt.Sprintf("notes://%d-", number)
	uri += strings.Repeat("x", size-len(uri))
	return whole(s.t, s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":%q}}`, number+1, uri), session)).code(s.t)
}

// The subscriptions of a session, and those of all sessions of a caller, are bounded in
// bytes. The subscriptions of a session that has ended no longer count.
func TestFindingX1SubscriptionsAreBoundedByBytes(t *testing.T) {
	const size, ofSession, ofCaller = 8<<10 - 64, 32, 512 // 256 KiB and 4 MiB of 8 KiB
	mux := tools()
	mux.Resource("notes://{id}", mcp.ResourceFunc(func(context.Context, struct {
		ID string `json:"id"`
	}) (string, error) {
		return "", nil
	}, nil))
	s := serve(t, newHandler(t, mux, nil))
	var sessions []header
	for n := range ofCaller / ofSession {
		sessions = append(sessions, s.open("2025-11-25"))
		for i := range ofSession {
			if code := s.subscribed(sessions[n], i, size); code != 0 {
				t.Fatalf("subscription %d of session %d: %d", i, n, code)
			}
		}
	}
	if code := s.subscribed(sessions[0], ofSession, size); code != mcp.CodeInvalidParams {
		t.Errorf("beyond the limit of a session: %d", code)
	}
	if code := s.subscribed(sessions[0], 0, size); code != 0 {
		t.Errorf("a subscription that is there: %d", code)
	}
	last := s.open("2025-11-25")
	if code := s.subscribed(last, 0, size); code != mcp.CodeInternalError {
		t.Errorf("beyond the limit of a caller: %d", code)
	}
	s.do(s.request(t.Context(), http.MethodDelete, "", sessions[0]))
	if code := s.subscribed(last, 0, size); code != 0 {
		t.Errorf("after a session has ended: %d", code)
	}
}

// The requests in flight of a session are bounded in bytes, also if no connection waits for
// their responses, as over HTTP+SSE.
func TestFindingX1RequestsInFlightAreBoundedByBytes(t *testing.T) {
	mux := tools()
	began, _ := waiting(mux)
	s := serve(t, newSSEHandler(t, mux))
	stream := read(t, s.do(s.request(t.Context(), http.MethodGet, "", header{"Accept": "text/event-stream"})))
	first, _ := stream.next()
	_, s.query, _ = strings.Cut(first.Data, "?")
	s.post(initialize("2024-11-05"), nil)
	stream.message()
	large := strings.Repeat("x", 15<<20)
	for i := range 5 {
		s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","arguments":{"x":%q}}}`, i, large), nil)
		if i < 4 {
			<-began
		}
	}
	if got := stream.message(); !strings.Contains(got, `"id":4,"error":{"code":-32603`) || !strings.Contains(got, "67108864") {
		t.Errorf("answered with %.300s", got)
	}
}

// countListens counts the subscriptions that a handler is serving.
func countListens(h mcp.Handler, n *atomic.Int32) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodListen {
			n.Add(1)
			defer n.Add(-1)
		}
		return h.ServeMCP(ctx, req)
	})
}

// After the client of a GET has disconnected, its stream continues for a while, and its
// request header is kept. A request with a large header is not.
func TestFindingX1HeadersOfAbsentClientsAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int
		want  int32
	}{"small": {1 << 10, 1}, "large": {17 << 10, 0}} {
		bubble(t, name, func(t *testing.T) {
			var listens atomic.Int32
			s := serve(t, newHandler(t, countListens(tools(), &listens), nil))
			session := s.open("2025-11-25")
			get := s.get(with(session, header{"X-Padding": strings.Repeat("x", test.bytes)}))
			<-get.opened
			get.cancel()
			synctest.Wait()
			if got := listens.Load(); got != test.want {
				t.Errorf("%d subscriptions continue, want %d", got, test.want)
			}
			s.close()
		})
	}
}

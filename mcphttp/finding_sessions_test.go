// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// identified takes the caller of a request, and its address, from headers.
func identified(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user := r.Header.Get("User"); user != "" {
			r = mcphttp.WithPrincipal(r, &mcp.Principal{Subject: user})
		}
		if addr := r.Header.Get("Address"); addr != "" {
			r.RemoteAddr = addr
		}
		h.ServeHTTP(w, r)
	})
}

// tryOpen opens a session for a caller, and returns the header of its requests, which is
// nil if it is refused.
func (s *site) tryOpen(caller header) header {
	s.t.Helper()
	res := whole(s.t, s.post(initialize("2025-11-25"), caller))
	switch res.status {
	case http.StatusOK:
		return with(caller, header{"Mcp-Session-Id": res.header.Get("Mcp-Session-Id")})
	case http.StatusServiceUnavailable:
		if res.header.Get("Retry-After") == "" {
			s.t.Error("503 without Retry-After")
		}
		return nil
	}
	s.t.Fatalf("initialize: %d %s", res.status, res.body)
	return nil
}

func count(h *mcphttp.Handler) (n int) {
	for range h.Sessions() {
		n++
	}
	return n
}

// S8: one caller who opens session after session loses the oldest of them, and ends
// those of no other caller.
func TestFindingS8OthersKeepTheirSessions(t *testing.T) {
	type callers struct{ alice, mallory header }
	for name, who := range map[string]callers{
		"principals":  {header{"User": "alice"}, header{"User": "mallory"}},
		"addresses":   {header{"Address": "192.0.2.1:1000"}, header{"Address": "192.0.2.2:1000"}},
		"networks":    {header{"Address": "[2001:db8:0:1::1]:1000"}, header{"Address": "[2001:db8:0:2::1]:1000"}},
		"one of each": {header{"User": "alice", "Address": "192.0.2.2:1000"}, header{"Address": "192.0.2.2:1000"}},
	} {
		for _, opts := range []mcphttp.Options{{MaxSessions: 20, MaxSessionsPerCaller: 5}, {MaxSessions: 20}} {
			bubble(t, name, func(t *testing.T) {
				h := newHandler(t, tools(), &opts)
				s := serve(t, identified(h))
				alice := s.tryOpen(who.alice)
				var theirs []header
				for range 100 {
					<-time.After(time.Second)
					theirs = append(theirs, s.tryOpen(who.mallory))
				}
				if got := answersHello(t, s, alice); got != http.StatusOK {
					t.Errorf("alice's session: %d", got)
				}
				if got := answersHello(t, s, theirs[99]); got != http.StatusOK {
					t.Errorf("the last of mallory's: %d", got)
				}
				if got := answersHello(t, s, theirs[0]); got != http.StatusNotFound {
					t.Errorf("the first of mallory's: %d", got)
				}
				if got, most := count(h), opts.MaxSessions; got > most || opts.MaxSessionsPerCaller > 0 && got != opts.MaxSessionsPerCaller+1 {
					t.Errorf("there are %d sessions", got)
				}
			})
		}
	}
}

// S8: all addresses of an IPv6 network, and all ports, are one caller.
func TestFindingS8AddressesOfOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, tools(), &mcphttp.Options{MaxSessionsPerCaller: 3})
		s := serve(t, identified(h))
		for i := range 10 {
			s.tryOpen(header{"Address": fmt.Sprintf("[2001:db8:0:0:%x::%x]:%d", i<<12, i+1, 1000+i)})
			s.tryOpen(header{"Address": fmt.Sprintf("192.0.2.1:%d", 1000+i)})
			s.tryOpen(header{"Address": fmt.Sprintf("[::ffff:192.0.2.1]:%d", 1000+i)})
		}
		if got := count(h); got != 6 {
			t.Errorf("there are %d sessions, want 3 for each of 2 callers", got)
		}
	})
}

// S8: where there is no room at all, a caller without sessions gets that of a caller with
// more, and no caller with fewer loses any.
func TestFindingS8FullServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, tools(), &mcphttp.Options{MaxSessions: 6, MaxSessionsPerCaller: 5})
		s := serve(t, identified(h))
		sessions := map[string]header{}
		for _, user := range []string{"bob", "carol", "dora"} {
			sessions[user] = s.tryOpen(header{"User": user})
			<-time.After(time.Second)
		}
		for range 5 {
			s.tryOpen(header{"User": "mallory"})
		}
		sessions["erna"] = s.tryOpen(header{"User": "erna"})
		for user, session := range sessions {
			if got := answersHello(t, s, session); got != http.StatusOK {
				t.Errorf("%s: %d", user, got)
			}
		}
		if got := count(h); got != 6 {
			t.Errorf("there are %d sessions, want 6", got)
		}
	})
}

// S8: a session that came from another replica counts as well.
func TestFindingS8RestoredSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		one := serve(t, identified(newHandler(t, tools(), &mcphttp.Options{Store: shared})))
		h := newHandler(t, tools(), &mcphttp.Options{Store: shared, MaxSessionsPerCaller: 3})
		two := serve(t, identified(h))
		for range 10 {
			session := one.tryOpen(header{"User": "mallory"})
			if got := answersHello(t, two, session); got != http.StatusOK {
				t.Errorf("at the other replica: %d", got)
			}
			<-time.After(time.Second)
		}
		if got := count(h); got != 3 {
			t.Errorf("there are %d sessions, want 3", got)
		}
	})
}

// S8: of the deprecated transport, too, one caller cannot have all sessions. Since their
// streams are open, none of them makes room.
func TestFindingS8SSE(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, identified(mcphttp.NewSSEHandler(tools(), &mcphttp.Options{MaxSessions: 10, MaxSessionsPerCaller: 3, Logger: quiet})))
		get := func(ctx context.Context, user string) *http.Response {
			return s.do(s.request(ctx, http.MethodGet, "", header{"User": user}))
		}
		ctx, leave := context.WithCancel(t.Context())
		for i := range 5 {
			want := http.StatusOK
			if i >= 3 {
				want = http.StatusServiceUnavailable
			}
			if got := get(ctx, "mallory"); got.StatusCode != want {
				t.Errorf("stream %d: %d, want %d", i, got.StatusCode, want)
			}
		}
		if got := get(t.Context(), "alice"); got.StatusCode != http.StatusOK {
			t.Errorf("alice: %d", got.StatusCode)
		}
		leave()
		synctest.Wait()
		if got := get(t.Context(), "mallory"); got.StatusCode != http.StatusOK {
			t.Errorf("after the others have ended: %d", got.StatusCode)
		}
		s.close()
	})
}

// abandon makes a request of a session, and its client go when the server has begun to
// answer.
func (s *site) abandon(method, body string, h header) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	res := s.do(s.request(ctx, method, body, h))
	read(s.t, res).next()
	cancel()
	synctest.Wait()
}

// W8: a session makes room although a question waits in it, or its stream lingers, if
// its client has gone; and not while its client waits.
func TestFindingW8AbsentClients(t *testing.T) {
	for name, use := range map[string]func(s *site, h header){
		"a question":        func(s *site, h header) { s.abandon(http.MethodPost, call(9, "ask"), h) },
		"its own stream":    func(s *site, h header) { s.abandon(http.MethodGet, "", h) },
		"nothing":           func(*site, header) {},
		"a question, there": func(s *site, h header) { read(s.t, s.post(call(9, "ask"), h)).next() },
		"its own stream, there": func(s *site, h header) {
			read(s.t, s.do(s.request(s.t.Context(), http.MethodGet, "", h))).next()
		},
	} {
		bubble(t, name, func(t *testing.T) {
			h := newHandler(t, tools(), &mcphttp.Options{MaxSessions: 3})
			s := serve(t, h)
			var first header
			for i := range 3 {
				session := s.open("2025-11-25")
				if use(s, session); i == 0 {
					first = session
				}
				<-time.After(time.Second)
			}
			there := strings.HasSuffix(name, "there")
			if got := s.tryOpen(header{}); (got == nil) != there {
				t.Errorf("a new session: %v", got)
			}
			if got := answersHello(t, s, first); (got == http.StatusNotFound) == there {
				t.Errorf("the oldest session: %d", got)
			}
			s.close()
		})
	}
}

// W8: what is idle goes before what was left alone.
func TestFindingW8IdleFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newHandler(t, tools(), &mcphttp.Options{MaxSessions: 2}))
		asking, idle := s.open("2025-11-25"), s.open("2025-11-25")
		s.abandon(http.MethodPost, call(9, "ask"), asking)
		s.open("2025-11-25")
		if got := answersHello(t, s, asking); got != http.StatusOK {
			t.Errorf("the session with a question: %d", got)
		}
		if got := answersHello(t, s, idle); got != http.StatusNotFound {
			t.Errorf("the idle session: %d", got)
		}
		s.close()
	})
}

// S3: a session can be continued at another replica, by the caller who opened it and by
// no other.
func TestFindingS3SessionAtAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		one := serve(t, identified(newHandler(t, tools(), &mcphttp.Options{Store: shared})))
		owners := map[string]header{"alice": {"User": "alice"}, "nobody": {}}
		for owner, caller := range owners {
			session := one.tryOpen(caller)
			for _, other := range []header{{"User": "alice"}, {"User": "mallory"}, {}} {
				want := http.StatusNotFound
				if other["User"] == caller["User"] {
					want = http.StatusOK
				}
				theirs := with(other, header{"Mcp-Session-Id": session["Mcp-Session-Id"]})
				for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
					two := serve(t, identified(newHandler(t, tools(), &mcphttp.Options{Store: shared})))
					if method == http.MethodDelete && want == http.StatusOK {
						continue // or it would be gone for the others
					}
					body := ""
					if method == http.MethodPost {
						body = call(1, "hello")
					}
					if got := two.do(two.request(t.Context(), method, body, theirs)).StatusCode; got != want {
						t.Errorf("%s by %q of a session of %s: %d, want %d", method, other["User"], owner, got, want)
					}
				}
			}
			if got := answersHello(t, one, session); got != http.StatusOK {
				t.Errorf("the session of %s afterwards: %d", owner, got)
			}
		}
	})
}

// W17, HTTP-15: a request that names a modern version in the header must obey that
// revision, whatever session it names besides.
func TestFindingW17ModernHeaderWithSession(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	session := s.open("2025-11-25")["Mcp-Session-Id"]
	for _, id := range []string{session, "unknown", ""} {
		h := header{"MCP-Protocol-Version": "2026-07-28", "Mcp-Session-Id": id}
		if got := whole(t, s.post(call(1, "hello"), h)); got.status != http.StatusBadRequest || got.code(t) != mcp.CodeHeaderMismatch {
			t.Errorf("without Mcp-Method, session %q: %d %s", id, got.status, got.body)
		}
		h = with(h, header{"Mcp-Method": "tools/call", "Mcp-Name": "hello"})
		if got := whole(t, s.post(call(1, "hello"), h)); got.status != http.StatusBadRequest || got.code(t) != mcp.CodeInvalidParams {
			t.Errorf("without _meta, session %q: %d %s", id, got.status, got.body)
		}
		body, h := callModern("hello")
		if got := whole(t, s.post(body, with(h, header{"Mcp-Session-Id": id}))); got.status != http.StatusOK || got.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("complete, session %q: %d %s", id, got.status, got.body)
		}
	}
}

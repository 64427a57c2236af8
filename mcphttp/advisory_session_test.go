// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// The advisories in this file are about sessions: who owns them, and how many there may be.

// users returns a server with a tool that returns its caller, behind authentication that
// trusts X-User.
func users(t *testing.T, opts *mcphttp.Options) *site {
	t.Helper()
	if opts == nil {
		opts = &mcphttp.Options{}
	}
	opts.Logger = quiet
	mux := tools()
	mux.Tool("whoami", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return "you are " + mcp.PrincipalFromContext(ctx).Subject, nil
	}, nil))
	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{Options: opts})
	t.Cleanup(func() { shutDown(router) })
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user := r.Header.Get("X-User"); user != "" {
			r = mcphttp.WithPrincipal(r, &mcp.Principal{Issuer: "test", Subject: user})
		}
		router.ServeHTTP(w, r)
	}))
}

// enter opens a session for a user.
func (s *site) enter(user string) header {
	s.t.Helper()
	h := header{"X-User": user}
	res := s.at(http.MethodPost, "/mcp", initialize("2025-11-25"), h)
	if res.status != http.StatusOK {
		s.t.Fatalf("initialize: %d %s", res.status, res.body)
	}
	h = with(h, header{"Mcp-Session-Id": res.header.Get("Mcp-Session-Id"), "MCP-Protocol-Version": "2025-11-25"})
	s.at(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, h)
	return h
}

// The Ruby SDK gave the stream of a session to the last client that requested it: another
// client that knew its ID received the owner's messages, and the owner received nothing.
func TestAdvisoryCVE_2026_33946(t *testing.T) {
	mux := tools()
	inner := newHandler(t, mux, nil)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, mcphttp.WithPrincipal(r, &mcp.Principal{Issuer: "test", Subject: r.Header.Get("X-User")}))
	}))
	ann := s.enter("ann")
	own := read(t, s.do(s.request(t.Context(), http.MethodGet, "", ann)))
	primed, _ := own.next()
	for _, more := range []header{nil, {"Last-Event-ID": primed.LastEventID}} {
		if res := s.at(http.MethodGet, "/mcp", "", with(with(ann, header{"X-User": "bob"}), more)); res.status != http.StatusNotFound {
			t.Errorf("the stream of another, %v: %d", more, res.status)
		}
	}
	mux.Tool("new", uncalled)
	if got := own.message(); !strings.Contains(got, "tools/list_changed") {
		t.Errorf("its owner got %s", got)
	}
}

// The Ruby SDK ran calls in a session for any client that knew its ID, and sent their
// notifications to the owner.
func TestAdvisoryCVE_2026_67431(t *testing.T) {
	s := users(t, nil)
	ann := s.enter("ann")
	for _, user := range []string{"bob", ""} {
		stolen := with(ann, header{"X-User": user})
		for name, res := range map[string]reply{
			"a call":         s.at(http.MethodPost, "/mcp", call(1, "whoami"), stolen),
			"an answer":      s.at(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"result":{}}`, stolen),
			"a cancellation": s.at(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, stolen),
			"a DELETE":       s.at(http.MethodDelete, "/mcp", "", stolen),
		} {
			if res.status != http.StatusNotFound || strings.Contains(res.body, "ann") {
				t.Errorf("%s of %q: %d %s, want 404", name, user, res.status, res.body)
			}
		}
	}
	if res := s.at(http.MethodPost, "/mcp", call(2, "whoami"), ann); !strings.Contains(res.body, "you are ann") {
		t.Errorf("its owner: %d %s", res.status, res.body)
	}
}

// The Python SDK looked up a session by its ID alone, including on the HTTP+SSE transport.
func TestAdvisoryCVE_2026_52869(t *testing.T) {
	s := users(t, nil)
	r := s.request(t.Context(), http.MethodGet, "", header{"X-User": "ann"})
	r.URL.Path = "/sse"
	stream := read(t, s.do(r))
	first, _ := stream.next()
	endpoint, err := r.URL.Parse(first.Data)
	if err != nil || first.Type != "endpoint" {
		t.Fatalf("%+v: %v", first, err)
	}
	send := func(user, body string) int {
		r := s.request(t.Context(), http.MethodPost, body, header{"X-User": user})
		r.URL = endpoint
		return whole(t, s.do(r)).status
	}
	send("ann", initialize("2024-11-05"))
	stream.message()
	send("ann", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, user := range []string{"bob", ""} {
		if got := send(user, call(1, "whoami")); got != http.StatusNotFound {
			t.Errorf("a message of %q in the session of another: %d", user, got)
		}
	}
	if got := send("ann", call(2, "whoami")); got != http.StatusAccepted {
		t.Errorf("a message of its owner: %d", got)
	}
	if got := stream.message(); !strings.Contains(got, "you are ann") || !strings.Contains(got, `"id":2`) {
		t.Errorf("the stream says %s", got)
	}
}

// oatpp-mcp used memory addresses as session IDs. Addresses are reused, so a client that
// opened and closed many sessions learned the IDs of other clients' sessions.
func TestAdvisoryCVE_2025_6515(t *testing.T) {
	s := users(t, &mcphttp.Options{Sessions: mcphttp.SessionOptions{Max: 2}})
	seen := map[string]bool{}
	for range 200 {
		h := s.enter("ann")
		id := h["Mcp-Session-Id"]
		if seen[id] || len(id) < 22 {
			t.Fatalf("the session id %q after %d others", id, len(seen))
		}
		seen[id] = true
		s.at(http.MethodDelete, "/mcp", "", h)
		if res := s.at(http.MethodPost, "/mcp", call(1, "whoami"), h); res.status != http.StatusNotFound {
			t.Fatalf("a session that has ended: %d %s", res.status, res.body)
		}
	}
}

// FrontMCP replayed the events of any session to any client that knew an event ID.
func TestAdvisoryGHSA_84j6_jc92_77jm(t *testing.T) {
	s := users(t, nil)
	ann, bob := s.enter("ann"), s.enter("bob")
	all := events(t, s.post(call(1, "steps"), ann), 0)
	if len(all) < 2 {
		t.Fatalf("there are %d events", len(all))
	}
	for _, e := range all {
		last := header{"Last-Event-ID": e.LastEventID}
		if res := s.at(http.MethodGet, "/mcp", "", with(bob, last)); res.status != http.StatusNotFound {
			t.Errorf("%s in another session: %d", e.LastEventID, res.status)
		}
		if res := s.at(http.MethodGet, "/mcp", "", with(with(ann, header{"X-User": "bob"}), last)); res.status != http.StatusNotFound {
			t.Errorf("%s for another user: %d", e.LastEventID, res.status)
		}
	}
	if got := events(t, s.do(s.request(t.Context(), http.MethodGet, "", with(ann, header{"Last-Event-ID": all[0].LastEventID}))), len(all)-1); len(got) != len(all)-1 {
		t.Errorf("its owner got %d events", len(got))
	}
}

// mcp-go accepted every well-formed session ID, without a handshake.
func TestAdvisoryMadeUpSession(t *testing.T) {
	s := users(t, nil)
	own := s.enter("ann")["Mcp-Session-Id"]
	for _, id := range []string{strings.Repeat("A", len(own)), own[:len(own)-1] + "_", own + "A", strings.ToLower(own) + "-", "mcp-session-550e8400-e29b-41d4-a716-446655440000"} {
		h := header{"X-User": "ann", "Mcp-Session-Id": id, "MCP-Protocol-Version": "2025-11-25"}
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			if res := s.at(method, "/mcp", call(1, "whoami"), h); res.status != http.StatusNotFound {
				t.Errorf("%s with %q: %d %s", method, id, res.status, res.body)
			}
		}
	}
}

// The Ruby SDK kept every session until its client deleted it: handshakes alone could
// exhaust its memory.
func TestAdvisoryCVE_2026_67430(t *testing.T) {
	handler := newHandler(t, tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{Max: 20}})
	s := serve(t, handler)
	first := s.open("2025-11-25")
	for range 200 {
		s.open("2025-11-25")
	}
	if n := len(slices.Collect(handler.Sessions())); n > 20 {
		t.Errorf("%d sessions are open, want 20", n)
	}
	if res := s.at(http.MethodPost, "/mcp", call(1, "hello"), first); res.status != http.StatusNotFound {
		t.Errorf("the first session is still there: %d", res.status)
	}
}

// The Python SDK never ended idle sessions, unless an option was set.
func TestAdvisoryCVE_2026_59951(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t, tools(), nil) // the defaults
		s := serve(t, handler)
		for range 100 {
			s.open("2025-11-25")
		}
		<-time.After(time.Hour)
		if n := len(slices.Collect(handler.Sessions())); n != 0 {
			t.Errorf("%d sessions are left after an hour", n)
		}
		s.close()
	})
}

// The Rust SDK created a session before it read the message, and leaked the session if the
// message was invalid.
func TestAdvisoryCVE_2026_63128(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t, tools(), nil)
		s := serve(t, handler)
		good := initialize("2025-11-25")
		for _, body := range []string{
			"", "{", "[]", "null", `{"jsonrpc":"2.0"}`, call(1, "hello"), `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
			`{"jsonrpc":"2.0","method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`,
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}`, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":7}}`,
			good[1:], "[" + good + "]", good + good, strings.Replace(good, `"id":0`, `"id":null`, 1), `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		} {
			res := s.at(http.MethodPost, "/mcp", body, nil)
			synctest.Wait()
			if n := len(slices.Collect(handler.Sessions())); n != 0 || res.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s: %d %s; %d sessions", body, res.status, res.body, n)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodHead, http.MethodPut} {
			s.at(method, "/mcp", "", nil)
		}
		for _, h := range []header{{"Accept": "text/html"}, {"Content-Type": "text/plain"}, {"Origin": "https://evil.example"}} {
			s.at(http.MethodPost, "/mcp", good, h)
		}
		synctest.Wait()
		if n := len(slices.Collect(handler.Sessions())); n != 0 {
			t.Errorf("%d sessions", n)
		}
		s.open("2025-11-25")
		if n := len(slices.Collect(handler.Sessions())); n != 1 {
			t.Errorf("%d sessions, want the one that was opened", n)
		}
		s.close()
	})
}

// The TypeScript SDK mixed up clients that shared a server: their requests have the same
// IDs, and responses, progress and questions for one client went to another.
func TestAdvisoryCVE_2026_25536(t *testing.T) {
	mux := tools()
	var together sync.WaitGroup
	const clients = 20
	together.Add(2 * clients)
	mux.Tool("secret", mcp.ToolFunc(func(ctx context.Context, in struct {
		Mine string `json:"mine"`
	}) (string, error) {
		together.Done()
		together.Wait() // all are in flight
		mcp.Progress(ctx, 1, 2, "progress of "+in.Mine)
		return "secret of " + in.Mine, nil
	}, nil))
	s := serve(t, newHandler(t, mux, nil))
	var wg sync.WaitGroup
	for i := range 2 * clients {
		mine := fmt.Sprintf("client-%d.", i)
		body, h := modern("tools/call", "secret", fmt.Sprintf(`"name":"secret","arguments":{"mine":%q}`, mine))
		if i%2 == 1 {
			h = s.open("2025-11-25")
			body = strings.Replace(call(1, "secret"), `"_meta"`, fmt.Sprintf(`"arguments":{"mine":%q},"_meta"`, mine), 1)
		}
		wg.Go(func() {
			got := whole(t, s.post(body, h)).body
			if strings.Count(got, "progress of "+mine) != 1 || strings.Count(got, "secret of "+mine) != 1 || strings.Count(got, " of client-") != 2 {
				t.Errorf("%s got %s", mine, got)
			}
		})
	}
	wg.Wait()
}

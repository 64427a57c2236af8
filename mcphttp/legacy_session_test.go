// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// A session from the handshake to its end.
func TestSessionLifecycle(t *testing.T) {
	handler := newHandler(t, tools(), nil)
	s := serve(t, handler)
	for _, version := range mcp.LegacyVersions() {
		h := s.open(version)
		if res := whole(t, s.post(call(1, "hello"), h)); res.status != 200 || !strings.Contains(res.body, `"text":"hello"`) || strings.Contains(res.body, "resultType") {
			t.Errorf("%s: %d %s", version, res.status, res.body)
		}
		open := slices.Collect(handler.Sessions())
		if len(open) != 1 || open[0].Version() != version || open[0].ClientInfo().Name != "test" {
			t.Errorf("%s: open sessions: %v", version, open)
		}
		if res := s.do(s.request(t.Context(), http.MethodDelete, "", h)); res.StatusCode != http.StatusNoContent {
			t.Errorf("%s: DELETE: %d", version, res.StatusCode)
		}
		if res := whole(t, s.post(call(2, "hello"), h)); res.status != 404 || res.code(t) == 0 {
			t.Errorf("%s: after DELETE: %d %s", version, res.status, res.body)
		}
	}
}

// The responses to requests that a legacy client should not send.
func TestLegacyErrors(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	h := s.open("2025-11-25")
	cases := []struct {
		name, method, body string
		header             header
		status             int
	}{
		{"no session", "POST", call(1, "hello"), nil, 400},
		{"unknown session", "POST", call(1, "hello"), header{"Mcp-Session-Id": "forged"}, 404},
		{"unknown session, DELETE", "DELETE", "", header{"Mcp-Session-Id": "forged"}, 404},
		{"no session, DELETE", "DELETE", "", nil, 405},
		{"unknown session, GET", "GET", "", header{"Mcp-Session-Id": "forged"}, 404},
		{"no session, GET", "GET", "", nil, 405},
		{"GET that takes no stream", "GET", "", with(h, header{"Accept": "application/json"}), 406},
		{"unknown version", "POST", call(1, "hello"), with(h, header{"MCP-Protocol-Version": "1999-01-01"}), 400},
		{"no version", "POST", call(1, "hello"), with(h, header{"MCP-Protocol-Version": ""}), 200},
		{"second initialize", "POST", initialize("2025-11-25"), h, 200},
		{"initialize in an unknown session", "POST", initialize("2025-11-25"), header{"Mcp-Session-Id": "forged"}, 200},
		{"batch", "POST", "[" + call(1, "hello") + "]", h, 400},
		{"batch without session", "POST", "[" + initialize("2025-03-26") + "]", nil, 400},
		{"PUT", "PUT", "", h, 405},
		{"HEAD", "HEAD", "", h, 405},
		{"OPTIONS", "OPTIONS", "", nil, 204},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res := s.do(s.request(t.Context(), c.method, c.body, c.header))
			if res.StatusCode != c.status {
				t.Errorf("status %d, want %d", res.StatusCode, c.status)
			}
			if allow := res.Header.Get("Allow"); c.status == 405 && !strings.Contains(allow, "POST") {
				t.Errorf("405 with Allow %q", allow) // T30
			}
		})
	}
	discovery := `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`
	if got := whole(t, s.post(discovery, h)); got.status != 200 || got.code(t) != mcp.CodeMethodNotFound {
		t.Errorf("discovery in a session: %+v", got)
	}
	if got := whole(t, s.post(discovery, nil)); got.status != 400 || got.code(t) != mcp.CodeHeaderMismatch {
		t.Errorf("discovery without a session: %+v", got)
	}
	if got := whole(t, s.post(initialize("2025-11-25"), h)); got.code(t) != mcp.CodeInvalidRequest {
		t.Errorf("a second initialize: %s", got.body)
	}
	missing := `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"test://none"}}`
	if got := whole(t, s.post(missing, h)); got.code(t) != revision.CodeResourceNotFound {
		t.Errorf("an unknown resource: %s", got.body)
	}
	if got := whole(t, s.post(call(1, "none"), h)); got.status != 200 || got.code(t) != mcp.CodeInvalidParams {
		t.Errorf("an unknown tool: %d %s", got.status, got.body)
	}
}

// A client that repeats initialize with the ID of a session that has ended gets a new one, as
// does a caller who names the session of another. The new session has nothing of the old one:
// its ID is new, and it belongs to the sender of the request.
func TestFindingR29InitializeWithADeadSession(t *testing.T) {
	inner := newHandler(t, tools(), nil)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, mcphttp.WithPrincipal(r, &mcp.Principal{Issuer: "test", Subject: r.Header.Get("X-User")}))
	}))
	initialize := func(user, session string) reply {
		return whole(t, s.post(initialize("2025-11-25"), header{"X-User": user, "Mcp-Session-Id": session}))
	}
	first := initialize("ann", "").header.Get("Mcp-Session-Id")
	if res := initialize("ann", first); res.code(t) != mcp.CodeInvalidRequest || res.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("in a session that goes on: %d %s", res.status, res.body)
	}
	other := initialize("bob", first).header.Get("Mcp-Session-Id")
	s.do(s.request(t.Context(), http.MethodDelete, "", header{"X-User": "ann", "Mcp-Session-Id": first}))
	second := initialize("ann", first).header.Get("Mcp-Session-Id")
	for id, user := range map[string]string{other: "bob", second: "ann"} {
		if id == "" || id == first {
			t.Fatalf("%s got the session %q", user, id)
		}
		for _, caller := range []string{"ann", "bob"} {
			want := http.StatusNotFound
			if caller == user {
				want = http.StatusOK
			}
			if res := s.post(call(1, "hello"), header{"X-User": caller, "Mcp-Session-Id": id}); res.StatusCode != want {
				t.Errorf("a call of %s in the session of %s: %d, want %d", caller, user, res.StatusCode, want)
			}
		}
	}
}

// T65: a session belongs to the caller that opened it.
func TestSessionPrincipal(t *testing.T) {
	inner := newHandler(t, tools(), nil)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user := r.Header.Get("X-User"); user != "" {
			r = mcphttp.WithPrincipal(r, &mcp.Principal{Issuer: "test", Subject: user})
		}
		inner.ServeHTTP(w, r)
	}))
	res := s.post(initialize("2025-11-25"), header{"X-User": "ann"})
	h := header{"Mcp-Session-Id": res.Header.Get("Mcp-Session-Id")}
	for user, want := range map[string]int{"ann": 200, "bob": 404, "": 404} {
		if res := s.post(call(1, "hello"), with(h, header{"X-User": user})); res.StatusCode != want {
			t.Errorf("user %q: %d, want %d", user, res.StatusCode, want)
		}
	}
}

// T35: a request whose ID is in use is rejected, and the request that uses it is unaffected.
func TestDuplicateID(t *testing.T) {
	mux := tools()
	began := make(chan struct{})
	goOn := make(chan struct{})
	mux.Tool("hold", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		began <- struct{}{}
		<-goOn
		return "held", nil
	}, nil))
	s := serve(t, newHandler(t, mux, nil))
	h := s.open("2025-11-25")
	first := make(chan reply)
	go func() { first <- whole(t, s.post(call(7, "hold"), h)) }()
	<-began
	if second := whole(t, s.post(call(7, "hello"), h)); second.code(t) != mcp.CodeInvalidRequest {
		t.Errorf("the second: %s", second.body)
	}
	close(goOn)
	if res := <-first; !strings.Contains(res.body, "held") {
		t.Errorf("the first: %s", res.body)
	}
}

// T48: in the legacy era, only notifications/cancelled cancels a request. A cancelled
// request gets no response.
func TestLegacyCancel(t *testing.T) {
	mux := tools()
	began, ended := waiting(mux)
	s := serve(t, newHandler(t, mux, nil))
	h := s.open("2025-11-25")
	ctx, disconnect := context.WithCancel(t.Context())
	go func() { <-began; disconnect() }()
	_, _ = s.client.Do(s.request(ctx, http.MethodPost, call(1, "wait"), h))
	select {
	case err := <-ended:
		t.Fatalf("the handler ended with its client's connection: %v", err)
	default:
	}
	answer := make(chan reply)
	go func() { answer <- whole(t, s.post(call(2, "wait"), h)) }()
	<-began
	for _, id := range []int{1, 2} {
		whole(t, s.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"enough"}}`, id), h))
		var cancelled *mcp.CancelError
		if err := <-ended; !errors.As(err, &cancelled) || cancelled.Reason != "enough" {
			t.Errorf("the cause is %v", err)
		}
	}
	if res := <-answer; res.body != "" {
		t.Errorf("a cancelled request was answered: %s", res.body)
	}
}

// The questions of a call are sent on the stream of its POST, without a GET (T50). A handler
// may ask more than once.
func TestAskOnPost(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	h := s.open("2025-06-18")
	stream := read(t, s.post(call(1, "ask"), h))
	for _, name := range []string{"Ada", "Lovelace"} {
		q := stream.message()
		if !strings.Contains(q, "elicitation/create") || strings.Contains(q, `"mode"`) {
			t.Fatalf("got %s, want a question as 2025-06-18 asks it", q)
		}
		id := q[strings.Index(q, `"id":`)+5 : strings.Index(q, `,"method"`)]
		whole(t, s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":%q}}}`, id, name), h))
	}
	if got := stream.message(); !strings.Contains(got, "Ada Lovelace") {
		t.Errorf("the answer is %s", got)
	}
	res := whole(t, s.post(call(2, "ask"), with(h, header{"Accept": "application/json"})))
	if !strings.Contains(res.body, `"isError":true`) {
		t.Errorf("a client that takes no stream was told %s", res.body)
	}
}

// A server can close a stream, and the client can resume it. Every event is delivered once.
func TestPolling(t *testing.T) {
	mux := tools()
	goOn := make(chan struct{})
	mux.Tool("poll", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "")
		if err := mcphttp.CloseStream(ctx); err != nil {
			return "", err
		}
		<-goOn
		mcp.Progress(ctx, 2, 2, "")
		return "polled", nil
	}, nil))
	s := serve(t, newHandler(t, mux, nil))
	h := s.open("2025-11-25")
	res := s.post(call(1, "poll"), h)
	all := events(t, res, 0)
	if len(all) != 2 || all[0].Data != "" || all[0].LastEventID == "" {
		t.Fatalf("the first connection: %v, want a priming event and one notification", all)
	}
	back := s.do(s.request(t.Context(), http.MethodGet, "", with(h, header{"Last-Event-ID": all[0].LastEventID})))
	stream := read(t, back)
	if got := stream.message(); !strings.Contains(got, `"progress":1`) {
		t.Errorf("replayed: %s", got)
	}
	close(goOn)
	if got := stream.message(); !strings.Contains(got, `"progress":2`) {
		t.Errorf("went on with: %s", got)
	}
	if got := stream.message(); !strings.Contains(got, "polled") {
		t.Errorf("ended with: %s", got)
	}
	if e, ok := stream.next(); ok {
		t.Errorf("after the answer came %v", e)
	}
	again := s.do(s.request(t.Context(), http.MethodGet, "", with(h, header{"Last-Event-ID": all[1].LastEventID})))
	if got := events(t, again, 0); len(got) != 2 || !strings.Contains(got[1].Data, "polled") {
		t.Errorf("replayed once more: %v", got)
	}
}

// T25: forged event IDs, and those of other sessions, reveal nothing.
func TestForgedEventIDs(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	ann, bob := s.open("2025-11-25"), s.open("2025-11-25")
	all := events(t, s.post(call(1, "steps"), ann), 0)
	last := all[len(all)-2].LastEventID
	for _, c := range []struct {
		name, id string
		session  header
		status   int
	}{
		{"garbage", "garbage", ann, 400},
		{"empty parts", "-", ann, 400},
		{"negative", "1--1", ann, 400},
		{"long", strings.Repeat("1", 100) + "-1", ann, 400},
		{"path", "../../x-1", ann, 400},
		{"past the end", strings.Split(last, "-")[0] + "-999999", ann, 404},
		{"unknown stream", "77-1", ann, 404},
		{"another session", last, bob, 404},
		{"its own", last, ann, 200},
	} {
		res := s.do(s.request(t.Context(), http.MethodGet, "", with(c.session, header{"Last-Event-ID": c.id})))
		if res.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", c.name, res.StatusCode, c.status)
		}
	}
}

// T30: a second GET takes over the session's stream immediately. Changes in between are not
// lost.
func TestSecondGet(t *testing.T) {
	mux := tools()
	s := serve(t, newHandler(t, mux, nil))
	h := s.open("2025-11-25")
	get := func(more header) *reader {
		res := s.do(s.request(t.Context(), http.MethodGet, "", with(h, more)))
		if res.StatusCode != http.StatusOK {
			t.Fatalf("GET: %d", res.StatusCode)
		}
		return read(t, res)
	}
	first := get(nil)
	primed, _ := first.next() // T23: something is sent immediately
	second := get(nil)
	if _, ok := first.next(); ok {
		t.Error("the first stream goes on")
	}
	second.next()
	mux.Tool("new", uncalled)
	if got := second.message(); !strings.Contains(got, "tools/list_changed") {
		t.Errorf("the second stream got %s", got)
	}
	third := get(header{"Last-Event-ID": primed.LastEventID})
	if got := third.message(); !strings.Contains(got, "tools/list_changed") {
		t.Errorf("who came back for it got %s", got)
	}
}

// T13, T14: a session ends after being idle for SessionIdle, but not while a request is
// being served, however long that takes.
func TestSessionIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		mux.Tool("hour", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
			<-time.After(time.Hour)
			return "an hour later", nil
		}, nil))
		handler := newHandler(t, mux, &mcphttp.Options{Heartbeat: -1, Sessions: mcphttp.SessionOptions{Idle: 10 * time.Minute}})
		s := serve(t, handler)
		h := s.open("2025-11-25")
		for range 900 { // fewer than the limit for one caller
			s.open("2025-11-25")
		}
		for _, version := range []string{"2025-03-26", "2025-11-25"} { // which has no batches
			whole(t, s.post("["+call(1, "hello")+"]", s.open(version)))
		}
		all := slices.Collect(handler.Sessions())
		if res := whole(t, s.post(call(1, "hour"), h)); !strings.Contains(res.body, "an hour later") {
			t.Errorf("after an hour: %d %s", res.status, res.body)
		}
		if n := len(slices.Collect(handler.Sessions())); n != 1 {
			t.Errorf("%d sessions are open, want the one that was busy", n)
		}
		<-time.After(20 * time.Minute)
		if n := len(slices.Collect(handler.Sessions())); n != 0 {
			t.Errorf("%d sessions are open after being idle", n)
		}
		synctest.Wait()
		for _, session := range all {
			if !isDone(session.Done()) {
				t.Error("a session goes on after it was removed")
			}
		}
		if res := s.post(call(2, "hello"), h); res.StatusCode != http.StatusNotFound {
			t.Errorf("an expired session: %d", res.StatusCode)
		}
		s.close()
	})
}

// isDone reports whether a channel is closed.
func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// At the limit, the session that has been idle longest makes room for a new one.
func TestMaxSessions(t *testing.T) {
	mux := tools()
	began, _ := waiting(mux)
	handler := newHandler(t, mux, &mcphttp.Options{Sessions: mcphttp.SessionOptions{Max: 2}})
	s := serve(t, handler)
	busy := s.open("2025-11-25")
	go func() { _, _ = s.client.Do(s.request(t.Context(), http.MethodPost, call(1, "wait"), busy)) }()
	<-began
	idle := s.open("2025-11-25")
	other := s.open("2025-11-25")
	if res := s.post(call(1, "hello"), idle); res.StatusCode != http.StatusNotFound {
		t.Errorf("the idle session: %d, want 404", res.StatusCode)
	}
	go func() { _, _ = s.client.Do(s.request(t.Context(), http.MethodPost, call(1, "wait"), other)) }()
	<-began
	if res := s.post(initialize("2025-11-25"), nil); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("a session too many: %d", res.StatusCode)
	}
}

// Only 2025-03-26 supports batches.
func TestBatch(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	h := s.open("2025-03-26")
	batch := "[" + call(1, "hello") + `,{"jsonrpc":"2.0","method":"notifications/progress"},` + call(2, "none") + `,{"x":1}]`
	res := whole(t, s.post(batch, h))
	for _, want := range []string{`"id":1,"result"`, `"id":2,"error"`, `"code":-32600`} {
		if !strings.HasPrefix(res.body, "[") || !strings.Contains(res.body, want) {
			t.Errorf("the answer to a batch lacks %s: %s", want, res.body)
		}
	}
	if res := whole(t, s.post(`[{"jsonrpc":"2.0","method":"notifications/progress"}]`, h)); res.status != 202 || res.body != "" {
		t.Errorf("a batch without requests: %d %s", res.status, res.body)
	}
	if res := whole(t, s.post(`[]`, h)); res.code(t) != mcp.CodeInvalidRequest {
		t.Errorf("an empty batch: %s", res.body)
	}
}

// identified reads the caller and the address of a request from headers.
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

// tryOpen opens a session for a caller and returns the header of its requests, or nil if the
// server rejects it.
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

// S8: a caller that opens session after session loses its own oldest sessions, and never
// those of other callers.
func TestFindingS8OthersKeepTheirSessions(t *testing.T) {
	type callers struct{ alice, mallory header }
	for name, who := range map[string]callers{
		"principals":  {header{"User": "alice"}, header{"User": "mallory"}},
		"addresses":   {header{"Address": "192.0.2.1:1000"}, header{"Address": "192.0.2.2:1000"}},
		"networks":    {header{"Address": "[2001:db8:0:1::1]:1000"}, header{"Address": "[2001:db8:0:2::1]:1000"}},
		"one of each": {header{"User": "alice", "Address": "192.0.2.2:1000"}, header{"Address": "192.0.2.2:1000"}},
	} {
		for _, opts := range []mcphttp.Options{{Sessions: mcphttp.SessionOptions{Max: 20, MaxPerCaller: 5}}, {Sessions: mcphttp.SessionOptions{Max: 20}}} {
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
				if got, most := count(h), opts.Sessions.Max; got > most || opts.Sessions.MaxPerCaller > 0 && got != opts.Sessions.MaxPerCaller+1 {
					t.Errorf("there are %d sessions", got)
				}
			})
		}
	}
}

// S8: all addresses of an IPv6 network, and all ports, count as one caller.
func TestFindingS8AddressesOfOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{MaxPerCaller: 3}})
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

// S8: on a full server, a caller without sessions replaces a session of a caller with more,
// and no caller with fewer loses one.
func TestFindingS8FullServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{Max: 6, MaxPerCaller: 5}})
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

// S8: on the deprecated transport, too, one caller cannot use up all sessions. Since their
// streams are open, none of them makes room.
func TestFindingS8SSE(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, identified(mcphttp.NewSSEHandler(tools(), &mcphttp.Options{Logger: quiet, Sessions: mcphttp.SessionOptions{Max: 10, MaxPerCaller: 3}})))
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

// abandon sends a request in a session and disconnects once the server has started to
// respond.
func (s *site) abandon(method, body string, h header) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	res := s.do(s.request(ctx, method, body, h))
	read(s.t, res).next()
	cancel()
	synctest.Wait()
}

// W8: a session makes room, even if a question is pending in it or its stream lingers, if
// its client has disconnected, but not while its client waits.
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
			h := newHandler(t, tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{Max: 3}})
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

// W8: idle sessions are removed before abandoned ones.
func TestFindingW8IdleFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newHandler(t, tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{Max: 2}}))
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

// W17, HTTP-15: a request with a modern version in its header must conform to that revision,
// whatever session it names.
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
)

// The tests in this file cover rows of docs/evidence/conformance.md that no other test
// covers.

// HTTP-15, LH-17: headers of the legacy era have no meaning in the modern era and are not
// returned.
func TestModernIgnoresSessions(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	own := s.open("2025-11-25")["Mcp-Session-Id"]
	body, h := callModern("hello")
	for _, session := range []string{own, "forged"} {
		res := whole(t, s.post(body, with(h, header{"Mcp-Session-Id": session, "Last-Event-ID": "1-1"})))
		if res.status != http.StatusOK || res.header.Get("Mcp-Session-Id") != "" || !strings.Contains(res.body, `"resultType":"complete"`) {
			t.Errorf("session %s: %+v", session, res)
		}
	}
}

// HTTP-09, HTTP-10, RPC-14: a question ends its stream as a result, and nothing follows it.
func TestModernQuestion(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	body, h := callModern("ask")
	all := events(t, s.post(body, with(h, header{"Accept": "text/event-stream"})), 0)
	if len(all) != 1 || strings.Contains(all[0].Data, `"jsonrpc":"2.0","method"`) || !strings.Contains(all[0].Data, `"id":1,"result":{"resultType":"input_required"`) {
		t.Errorf("got %+v", all)
	}
}

// HTTP-06, LH-04: an unreadable notification is rejected, and so is a response to a question
// that was not asked.
func TestBadNotification(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	legacy := s.open("2025-11-25")
	modernHeader := header{"MCP-Protocol-Version": mcp.LatestVersion}
	for name, c := range map[string]struct {
		body   string
		header header
		status int
	}{
		"modern, no method":       {`{"jsonrpc":"2.0","method":""}`, modernHeader, 400},
		"modern, params are none": {`{"jsonrpc":"2.0","method":"notifications/x","params":7}`, modernHeader, 400},
		"modern, a response":      {`{"jsonrpc":"2.0","id":1,"result":{}}`, modernHeader, 400},
		"legacy, no method":       {`{"jsonrpc":"2.0","method":""}`, legacy, 400},
		"legacy, no session":      {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 400},
		"legacy, a late response": {`{"jsonrpc":"2.0","id":"psi-9","result":{}}`, legacy, 202},
	} {
		res := whole(t, s.post(c.body, c.header))
		if res.status != c.status || res.status == 202 && res.body != "" || res.status != 202 && strings.Contains(res.body, `"result"`) {
			t.Errorf("%s: %d %s, want %d", name, res.status, res.body, c.status)
		}
	}
}

// VER-01, HTTP-16: discovery with an unknown version is rejected like any other request.
func TestDiscoveryInUnknownVersion(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	body, h := modern("server/discover", "", "")
	res := whole(t, s.post(strings.Replace(body, mcp.LatestVersion, "2999-01-01", 1), with(h, header{"MCP-Protocol-Version": "2999-01-01"})))
	if res.status != http.StatusBadRequest || res.code(t) != mcp.CodeUnsupportedVersion || !strings.Contains(res.body, `"requested":"2999-01-01"`) {
		t.Errorf("%d %s", res.status, res.body)
	}
}

// LH-17, LH-27, SEC-02: session IDs are visible ASCII, long, and never repeated.
func TestSessionIDs(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	seen := map[string]bool{}
	for range 100 {
		id := s.open("2025-11-25")["Mcp-Session-Id"]
		visible := !strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e })
		if seen[id] || len(id) < 22 || !visible {
			t.Errorf("the session id %q", id)
		}
		seen[id] = true
	}
}

// LH-06, LH-13, LH-14, LH-15: an event ID belongs to one stream of the session, every stream
// begins with an event ID, and each message is sent on only one stream.
func TestEventIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		s := serve(t, newHandler(t, mux, nil))
		h := s.open("2025-11-25")
		get := read(t, s.do(s.request(t.Context(), http.MethodGet, "", h)))
		primed, ok := get.next()
		if !ok || primed.Data != "" || primed.LastEventID == "" {
			t.Fatalf("the GET begins with %+v", primed)
		}
		ids := []string{primed.LastEventID}
		for id := range 3 {
			all := events(t, s.post(call(id, "steps"), h), 0)
			if len(all) != 5 || all[0].Data != "" || all[0].LastEventID == "" {
				t.Errorf("a call's stream: %+v, want a priming event, three notifications and the response", all)
			}
			for _, e := range all {
				ids = append(ids, e.LastEventID)
			}
		}
		mux.Tool("new", uncalled)
		e, _ := get.next()
		if !strings.Contains(e.Data, "tools/list_changed") {
			t.Errorf("the first message on the GET is %s", e.Data)
		}
		ids = append(ids, e.LastEventID)
		slices.Sort(ids)
		if unique := slices.Compact(slices.Clone(ids)); len(unique) != len(ids) || ids[0] == "" {
			t.Errorf("event ids %q", ids)
		}
		s.close()
	})
}

// HTTP-04, LH-02, LH-12, SSE-03: the Accept headers of the client.
func TestAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, version := range both {
			v := &visits{Handler: newHandler(t, tools(), nil)}
			l := serve(t, v).link(nil)
			if version != mcp.LatestVersion {
				l.handshake(version)
			}
			l.call(toolCall(1, version, "hello"))
			synctest.Wait()
			_ = l.Close()
			for _, one := range v.all {
				accept, kind := one.header.Get("Accept"), one.header.Get("Content-Type")
				switch one.method {
				case http.MethodPost:
					if !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") || kind != "application/json" {
						t.Errorf("%s: POST with Accept %q, Content-Type %q", version, accept, kind)
					}
				case http.MethodGet:
					if accept != "text/event-stream" || version == mcp.LatestVersion {
						t.Errorf("%s: GET with Accept %q", version, accept)
					}
				}
			}
		}
	})
}

// SSE-02, SSE-04, SSE-05, SEC-10: the HTTP+SSE transport checks Host and Origin in the same
// way, and its events have the specified names.
func TestSSEOnTheWire(t *testing.T) {
	s := serve(t, newSSEHandler(t, tools()))
	for _, h := range []header{{"Origin": "http://evil.example.com"}, {"Host": "evil.example.com"}} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if res := s.do(s.request(t.Context(), method, "{}", h)); res.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %v: %d", method, h, res.StatusCode)
			}
		}
	}
	stream := read(t, s.do(s.request(t.Context(), http.MethodGet, "", nil)))
	first, _ := stream.next()
	if first.Type != "endpoint" {
		t.Fatalf("the first event is %+v", first)
	}
	r := s.request(t.Context(), http.MethodPost, initialize("2024-11-05"), nil)
	to, err := r.URL.Parse(first.Data)
	if err != nil {
		t.Fatal(err)
	}
	r.URL = to
	if res := whole(t, s.do(r)); res.status != http.StatusAccepted || strings.Contains(res.body, "protocolVersion") {
		t.Errorf("initialize: %d %s", res.status, res.body)
	}
	if e, _ := stream.next(); e.Type != "message" && e.Type != "" || !strings.Contains(e.Data, `"protocolVersion"`) {
		t.Errorf("the second event is %+v", e)
	}
}

// HTTP-14: a modern stream that breaks is not resumed.
func TestBrokenModernStream(t *testing.T) {
	v := &visits{Handler: script{post: func(w http.ResponseWriter, _ *http.Request) {
		stream(w, "id: 7\nretry: 1\n"+notification("x"))
	}}}
	if _, err := serve(t, v).link(nil).Call(t.Context(), toolCall(1, mcp.LatestVersion, "a")); err == nil {
		t.Error("the call succeeded")
	}
	if len(v.all) != 1 {
		t.Errorf("%d requests were sent", len(v.all))
	}
}

// HDR-13: a header that appears twice is rejected.
func TestHeadersTwice(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	for _, key := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
		body, h := callModern("hello")
		r := s.request(t.Context(), http.MethodPost, body, h)
		r.Header.Add(key, r.Header.Get(key))
		if res := whole(t, s.do(r)); res.status != http.StatusBadRequest || res.code(t) != mcp.CodeHeaderMismatch {
			t.Errorf("%s: %d %s", key, res.status, res.body)
		}
	}
}

// HDR-02: prompts and resources have names in headers, too.
func TestNamesOfPromptsAndResources(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	for name, want := range map[string]int{"test://doc": 0, "test://other": mcp.CodeHeaderMismatch, "": mcp.CodeHeaderMismatch} {
		body, h := modern("resources/read", name, `"uri":"test://doc"`)
		if res := whole(t, s.post(body, h)); res.code(t) != want {
			t.Errorf("Mcp-Name %q: %d %s", name, res.status, res.body)
		}
	}
}

// LH-03, TRN-01: one session may be used over many connections concurrently.
func TestSessionOverManyConnections(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	h := s.open("2025-11-25")
	answers := make(chan error)
	for id := range 20 {
		go func() {
			r := s.request(t.Context(), http.MethodPost, call(id, "hello"), h)
			r.Close = true
			res, err := s.client.Do(r)
			if err == nil {
				_ = res.Body.Close()
				if res.StatusCode != http.StatusOK {
					err = fmt.Errorf("status %d", res.StatusCode)
				}
			}
			answers <- err
		}()
	}
	for range 20 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

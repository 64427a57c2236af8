// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcphttp"
)

// The transport of 2024-11-05: a handler may ask more than once, as on all transports, and
// changes are reported.
func TestSSE(t *testing.T) {
	mux := tools()
	h := newSSEHandler(t, mux)
	s := serve(t, http.StripPrefix("/prefix", h))
	req := s.request(t.Context(), http.MethodGet, "", header{"Accept": "text/event-stream"})
	req.URL.Path = "/prefix/sse"
	stream := read(t, s.do(req))
	first, _ := stream.next()
	if first.Type != "endpoint" {
		t.Fatalf("the first event is %+v", first)
	}
	endpoint, err := req.URL.Parse(first.Data)
	if err != nil || endpoint.Path != "/prefix/sse" {
		t.Fatalf("the endpoint is %q: %v", first.Data, err)
	}
	send := func(to *url.URL, body string) int {
		r := s.request(t.Context(), http.MethodPost, body, nil)
		r.URL = to
		return s.do(r).StatusCode
	}
	if got := send(endpoint, initialize("2024-11-05")); got != http.StatusAccepted {
		t.Fatalf("initialize: %d", got)
	}
	if got := stream.message(); !strings.Contains(got, `"protocolVersion":"2024-11-05"`) {
		t.Fatalf("initialize was answered with %s", got)
	}
	send(endpoint, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(endpoint, call(1, "ask"))
	for _, name := range []string{"Ada", "Lovelace"} {
		q := stream.message()
		id := q[strings.Index(q, `"id":`)+5 : strings.Index(q, `,"method"`)]
		send(endpoint, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":%q}}}`, id, name))
	}
	if got := stream.message(); !strings.Contains(got, "Ada Lovelace") {
		t.Errorf("the answer is %s", got)
	}
	mux.Tool("new", uncalled)
	if got := stream.message(); !strings.Contains(got, "tools/list_changed") {
		t.Errorf("after a change came %s", got)
	}
	if open := slices.Collect(h.Sessions()); len(open) != 1 || open[0].Version() != "2024-11-05" {
		t.Errorf("open sessions: %v", open)
	}
	forged := *endpoint
	forged.RawQuery = "sessionId=forged"
	if got := send(&forged, call(2, "hello")); got != http.StatusNotFound {
		t.Errorf("an unknown session: %d", got)
	}
	if got := send(endpoint, "{"); got != http.StatusBadRequest {
		t.Errorf("malformed JSON: %d", got)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, ok := stream.next(); ok {
		t.Error("the stream outlives Shutdown")
	}
}

// brokenWriter is a ResponseWriter whose connection is broken once isBroken is set.
type brokenWriter struct {
	*httptest.ResponseRecorder
	isBroken atomic.Bool
	written  chan string
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.isBroken.Load() {
		return 0, io.ErrClosedPipe
	}
	w.written <- string(p)
	return len(p), nil
}

// A session ends with the first message or heartbeat that cannot be written to its stream,
// even if net/http has not noticed that the client disconnected. It also ends when the
// program closes it.
func TestSSEEndsEarly(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, h *mcphttp.SSEHandler, query string){
		"a message": func(t *testing.T, h *mcphttp.SSEHandler, query string) {
			t.Helper()
			r := (&site{t: t}).request(t.Context(), http.MethodPost, initialize("2024-11-05"), nil)
			r.URL.RawQuery = query
			res := httptest.NewRecorder()
			if h.ServeHTTP(res, r); res.Code != http.StatusAccepted {
				t.Errorf("initialize: %d", res.Code)
			}
		},
		"a heartbeat": func(*testing.T, *mcphttp.SSEHandler, string) { pass(time.Minute) },
		"Close": func(_ *testing.T, h *mcphttp.SSEHandler, _ string) {
			for s := range h.Sessions() {
				s.Close()
			}
		},
	} {
		bubble(t, name, func(t *testing.T) {
			h := newSSEHandler(t, tools())
			w := &brokenWriter{ResponseRecorder: httptest.NewRecorder(), written: make(chan string, 10)}
			go h.ServeHTTP(w, (&site{t: t}).request(t.Context(), http.MethodGet, "", nil))
			_, query, _ := strings.Cut(<-w.written, "data: mcp?")
			query, _, _ = strings.Cut(query, "\n")
			w.isBroken.Store(true)
			end(t, h, query)
			synctest.Wait()
			if n := len(slices.Collect(h.Sessions())); n != 0 {
				t.Errorf("%d sessions are open", n)
			}
		})
	}
}

// The URL for messages can be resolved by the rules of RFC 3986 and by those of RFC 2396,
// which Java follows: a URL that is only a query replaces the last segment of the path.
func TestFindingR21EndpointEventHasTheLastSegment(t *testing.T) {
	for path, want := range map[string]string{
		"/sse": "sse?sessionId=", "/prefix/sse": "sse?sessionId=", "/prefix/sse?key=value": "sse?sessionId=", "/prefix/sse/": "./?sessionId=",
		"/": "./?sessionId=", "/prefix/a%2Fb": "a%2Fb?sessionId=", "/prefix/a:b": "./a:b?sessionId=",
	} {
		t.Run(path, func(t *testing.T) {
			h := newSSEHandler(t, tools())
			s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/prefix/sse") {
					http.StripPrefix("/prefix/sse", h).ServeHTTP(w, r) // leaves nothing of the path
					return
				}
				h.ServeHTTP(w, r)
			}))
			req := s.request(t.Context(), http.MethodGet, "", header{"Accept": "text/event-stream"})
			var err error
			if req.URL, err = req.URL.Parse(path); err != nil {
				t.Fatal(err)
			}
			first, _ := read(t, s.do(req)).next()
			if !strings.HasPrefix(first.Data, want) {
				t.Fatalf("the endpoint is %q, want %s...", first.Data, want)
			}
			messages, err := req.URL.Parse(first.Data)
			if err != nil || messages.EscapedPath() != req.URL.EscapedPath() {
				t.Fatalf("%q resolves to %s, %v", first.Data, messages, err)
			}
			post := s.request(t.Context(), http.MethodPost, initialize("2024-11-05"), nil)
			post.URL = messages
			if res := s.do(post); res.StatusCode != http.StatusAccepted {
				t.Errorf("a message: %d", res.StatusCode)
			}
		})
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcphttp"
)

// streamAnswers are what a server can do with a GET: reject it with a status, abort it, or
// send events for a while.
var streamAnswers = map[string]string{
	"nothing": "", "comment": ": hello\n\n", "note": "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n", "id": "id: %d\ndata:\n\n", "only-id": "id: %d\n\n",
	"note-with-id": "id: %d\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n", "the-same-id": "id: same\ndata:\n\n", "no-id": "id:\ndata:\n\n",
	"soon": "retry: 1\nid: %d\ndata:\n\n", "late": "retry: 40000\nid: %d\ndata:\n\n", "never": "retry: 99999999999\nid: %d\ndata:\n\n",
	"cut": "id: cut\ndata: {\"jsonrpc\":", "cut-after": "id: cut\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", "other": "event: other\nid: %d\ndata: {}\n\n",
	"message": "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n", "long": "id: %d\ndata: " + strings.Repeat("x", 2000) + "\n\n",
	"response": "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n", "nonsense": "data: nonsense\n\n",
}

// A streamServer answers each GET according to the next word of its plan, and later GETs
// according to the last word. "note+20s" keeps the stream open for 20 seconds. The tenth
// stays open.
type streamServer struct {
	plan []string

	mu    sync.Mutex
	start time.Time
	n     int
	log   strings.Builder
}

func (s *streamServer) notef(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.log, "  %v "+format+"\n", append([]any{time.Since(s.start)}, args...)...)
}

func (s *streamServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := s.n
	s.n++
	s.mu.Unlock()
	if r.Method == http.MethodGet {
		s.notef("GET after %q", r.Header.Get("Last-Event-ID"))
	}
	if n >= 10 {
		stream(w, "")
		<-r.Context().Done()
		return
	}
	word, lasts, _ := strings.Cut(s.plan[min(n, len(s.plan)-1)], "+")
	w.Header().Set("Connection", "close") // net/http would retry on a reused connection
	if status, err := strconv.Atoi(word); err == nil {
		w.WriteHeader(status)
		return
	}
	if word == "abort" {
		panic(http.ErrAbortHandler)
	}
	text := streamAnswers[word]
	if strings.Contains(text, "%d") {
		text = fmt.Sprintf(text, n)
	}
	stream(w, text)
	if d, err := time.ParseDuration(lasts); err == nil {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	}
}

// When a client resumes a stream that has ended, and how it handles the responses, for the
// stream of a session and that of a call.
func TestStreamTranscripts(t *testing.T) {
	for name, plans := range map[string]string{
		"session": `405, 400, 401, 404, 406, 429, 500, 501, 503, 302, abort, nothing, comment, note, id, only-id, the-same-id, no-id, soon, late, never, cut, cut-after, other, message, long, response, nonsense,
			503 note, abort id, 429 405, note note, note+9s nothing, note+10s nothing, nothing+9s nothing, nothing+10s nothing, id 404, id 404 405, id 404 note, id 400 note, id 405 id, id 503 note+1h, id 503 404, note 404, id 302,
			note+1h 405, nothing nothing nothing note nothing, id+20s id+20s 503, note-with-id 404 note-with-id, no-id note`,
		"call": `nothing, comment, note, id, response, cut, cut-after, nonsense, long, only-id,
			id nothing, id response, id 503 response, id 404, id 400 response, id 405, id 302, id abort response, id cut response, soon response, late response, never response, id note response, id long response,
			id note-with-id response, id id id id id id id id id response, id nothing nothing nothing nothing nothing nothing response, note-with-id response, other response, only-id response, the-same-id,
			id+9s nothing+9s nothing, id+10s nothing+10s nothing, id comment+11s comment+11s comment+11s comment+11s comment+11s comment+11s comment+11s response, id nonsense response`,
	} {
		var text strings.Builder
		for plan := range strings.SplitSeq(plans, ",") {
			plan = strings.TrimSpace(plan)
			synctest.Test(t, func(t *testing.T) { fmt.Fprintf(&text, "> %s\n%s", plan, playStreams(t, name == "call", plan)) })
		}
		golden.Check(t, "stream-"+name, text.String())
	}
}

func playStreams(t *testing.T, isCall bool, plan string) string {
	server := &streamServer{plan: strings.Fields(plan), start: time.Now()}
	v := script{session: "s", get: server.serve, post: server.serve}
	if isCall {
		v.get = func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Last-Event-ID") == "" {
				w.WriteHeader(http.StatusMethodNotAllowed) // the stream of the session
				return
			}
			server.serve(w, r)
		}
	}
	s := serve(t, v)
	l := s.link(&mcphttp.TransportOptions{MaxMessage: 1000})
	received := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(received)
		for {
			select {
			case m := <-l.got:
				server.notef("received %s about %q: %v", m.Method, m.About, m.Err)
			case <-stop:
				return
			}
		}
	}()
	l.handshake("2025-11-25")
	if isCall {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		_, err := l.Call(ctx, toolCall(7, "2025-11-25", "a"))
		cancel()
		synctest.Wait() // earlier messages are received in another goroutine
		server.notef("call: %v", err)
	} else {
		pass(90 * time.Minute)
	}
	select {
	case <-l.Done():
		server.notef("the connection has ended: %v", l.Err())
	default:
	}
	_ = l.Close()
	close(stop)
	<-received
	s.close()
	server.mu.Lock()
	defer server.mu.Unlock()
	return server.log.String()
}

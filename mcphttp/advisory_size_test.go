// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp"
)

// The advisories in this file are about messages that are too long and clients that
// disconnect.

// endless is a body that never ends. It counts the bytes that are read.
type endless struct {
	io.ReadCloser
	start string
	read  int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.start)
	e.start = e.start[n:]
	for i := range p[n:] {
		p[n+i] = ' '
	}
	e.read += int64(len(p))
	if e.read > 1<<30 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

func (*endless) Close() error { return nil }

// floods sends an endless body directly to a handler, and returns the status and the number
// of bytes read.
func floods(h http.Handler, r *http.Request, start string, length int64) (status int, read int64) {
	body := &endless{start: start}
	r.Body, r.ContentLength = body, length
	w := &sink{header: http.Header{}}
	h.ServeHTTP(w, r)
	return w.status, body.read
}

// mcp-framework read a body to its end, regardless of its option for the maximum message
// size.
func TestAdvisoryCVE_2026_39313(t *testing.T) {
	s, ran := launching(t, &mcphttp.Options{MaxBody: 1000})
	body, h := callModern("launch")
	for _, length := range []int64{-1, 1 << 40, 1001} {
		status, read := floods(s.server.Handler, s.request(t.Context(), http.MethodPost, "", h), body, length)
		if status != http.StatusRequestEntityTooLarge || read > 64<<10 || ran.Load() != 0 {
			t.Errorf("%d bytes: status %d, %d bytes were read, %d calls", length, status, read, ran.Load())
		}
	}
	s.launches(ran, nil)
}

// The Ruby SDK had no such option. Here there is a limit by default.
func TestAdvisoryCVE_2026_67432(t *testing.T) {
	s, ran := launching(t, nil)
	for _, start := range []string{"", "{", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`, strings.Repeat("[", 1000)} {
		status, read := floods(s.server.Handler, s.request(t.Context(), http.MethodPost, "", nil), start, -1)
		if status != http.StatusRequestEntityTooLarge || read > 17<<20 {
			t.Errorf("%.20q: status %d, %d bytes were read", start, status, read)
		}
	}
	s.launches(ran, nil)
}

// The Python SDK did not limit the size of messages on any endpoint, including the older
// transport.
func TestAdvisoryGHSA_fmmv_w9g8_j3gc(t *testing.T) {
	s := users(t, &mcphttp.Options{MaxBody: 1000})
	r := s.request(t.Context(), http.MethodGet, "", header{"X-User": "ann"})
	r.URL.Path = "/sse"
	stream := read(t, s.do(r))
	first, _ := stream.next()
	endpoint, err := r.URL.Parse(first.Data)
	if err != nil {
		t.Fatal(err)
	}
	post := s.request(t.Context(), http.MethodPost, "", header{"X-User": "ann"})
	post.URL = endpoint
	if status, read := floods(s.server.Handler, post, "{", -1); status != http.StatusRequestEntityTooLarge || read > 64<<10 {
		t.Errorf("status %d, %d bytes were read", status, read)
	}
}

// The Kotlin SDK did not limit it either. Here messages in a session are limited, too.
func TestAdvisoryCVE_2026_63658(t *testing.T) {
	s := users(t, &mcphttp.Options{MaxBody: 1000})
	ann := s.enter("ann")
	if status, read := floods(s.server.Handler, s.request(t.Context(), http.MethodPost, "", ann), call(1, "whoami"), -1); status != http.StatusRequestEntityTooLarge || read > 64<<10 {
		t.Errorf("status %d, %d bytes were read", status, read)
	}
	if res := s.at(http.MethodPost, "/mcp", call(2, "whoami"), ann); !strings.Contains(res.body, "you are ann") {
		t.Errorf("the session afterwards: %d %s", res.status, res.body)
	}
}

// The Python SDK's process exited if a client disconnected at the wrong moment: here before
// the end of its body, while it is answered, and while it listens.
func TestAdvisoryCVE_2025_53365(t *testing.T) {
	mux := tools()
	began, ended := waiting(mux)
	s := serve(t, newHandler(t, mux, nil))
	legacy := s.open("2025-11-25")
	body, h := callModern("wait")
	listen, hl := modern("subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`)
	leave := func(method, body string, h header, when func()) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		left := make(chan struct{})
		go func() {
			defer close(left)
			res, err := s.client.Do(s.request(ctx, method, body, h))
			if err == nil {
				_ = res.Body.Close()
			}
		}()
		when()
		cancel()
		<-left
	}
	for range 20 {
		leave(http.MethodPost, body, h, func() { <-began })
		<-ended
		leave(http.MethodPost, listen, hl, func() {})
		leave(http.MethodGet, "", legacy, func() {})
		leave(http.MethodPost, call(1, "steps"), legacy, func() {})
		half := s.request(t.Context(), http.MethodPost, "", h)
		half.Body, half.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(body[:20]), broken{})), int64(len(body))
		if res, err := s.client.Do(half); err == nil {
			_ = res.Body.Close()
		}
	}
	if res := whole(t, s.post(call(2, "hello"), legacy)); res.status != http.StatusOK || res.code(t) != 0 {
		t.Errorf("the session afterwards: %d %s", res.status, res.body)
	}
	fine, hf := callModern("hello")
	if res := whole(t, s.post(fine, hf)); res.status != http.StatusOK || res.code(t) != 0 {
		t.Errorf("another client afterwards: %d %s", res.status, res.body)
	}
}

// broken is a body whose sender has disconnected.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

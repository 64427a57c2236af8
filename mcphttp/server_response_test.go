// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// T18: a client that requests a large response and does not read it is disconnected, too,
// however the response is sent. A client that reads gets all of it and keeps the connection.
func TestSlowReaderOfAnAnswer(t *testing.T) {
	const size = 1 << 20
	mux := tools()
	mux.Tool("large", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return strings.Repeat("x", size), nil }, nil))
	for name, accept := range map[string]string{"JSON": "application/json", "an event stream": "text/event-stream"} {
		for _, era := range []string{"modern", "legacy"} {
			if era == "legacy" && name == "JSON" {
				accept += ", text/event-stream" // clients must accept both
			}
			t.Run(era+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					took := make(chan time.Duration, 8)
					handler := newHandler(t, mux, &mcphttp.Options{WriteTimeout: 5 * time.Second})
					s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						begin := time.Now()
						handler.ServeHTTP(w, r)
						took <- time.Since(begin)
					}))
					body, h := callModern("large")
					if era == "legacy" {
						body, h = call(7, "large"), s.open(mcp.LegacyVersions()[0])
						<-took // of the handshake
						<-took
					}
					h = with(h, header{"Accept": accept})
					stuck := s.post(body, h) // its body is not read
					if got := <-took; got != 5*time.Second {
						t.Errorf("the handler had to do with a client that does not read for %v, want 5s", got)
					}
					_ = stuck.Body.Close()
					for range 2 {
						if got := whole(t, s.post(body, h)); len(got.body) < size {
							t.Errorf("a client that reads got %d bytes", len(got.body))
						}
						<-time.After(time.Minute)
					}
					s.close()
				})
			})
		}
	}
}

// A compressed body is refused as such, in both eras, rather than as malformed JSON.
func TestFindingY17ContentEncoding(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	body, h := callModern("hello")
	for encoding, want := range map[string]int{"": 200, "identity": 200, "Identity": 200, "gzip": 415, "br": 415, "gzip, identity": 415} {
		for era, res := range map[string]reply{
			"modern": whole(t, s.post(body, with(h, header{"Content-Encoding": encoding}))),
			"legacy": whole(t, s.post(initialize("2025-11-25"), header{"Content-Encoding": encoding})),
		} {
			if res.status != want || want == 415 && (!strings.Contains(res.body, "Content-Encoding") || res.header.Get("Accept-Encoding") != "identity") {
				t.Errorf("%s, %q: %d %v %s, want %d", era, encoding, res.status, res.header, res.body, want)
			}
		}
	}
}

// The error about a response writer that cannot flush names the writer of the middleware, not
// one of psi.
func TestFindingR28WriterOfMiddlewareIsNamed(t *testing.T) {
	h := newHandler(t, tools(), nil)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(dullWriter{w}, r) }))
	body, head := modern("subscriptions/listen", "", `"notifications":{}`)
	if res := whole(t, s.post(body, head)); res.status != http.StatusInternalServerError || !strings.Contains(res.body, "the response writer mcphttp_test.dullWriter") {
		t.Errorf("%d %s", res.status, res.body)
	}
}

// dullWriter is a ResponseWriter of middleware that hides what the writer below it can do.
type dullWriter struct{ http.ResponseWriter }

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcphttp"
)

var sseSession = regexp.MustCompile(`sessionId=[^\\ ]+`)

// sseScene opens an HTTP+SSE session, sends a request in it, and returns the response and
// what then arrives on the stream.
func sseScene(t *testing.T, method, body string, h header) (text string) {
	synctest.Test(t, func(t *testing.T) {
		handler := mcphttp.NewSSEHandler(refusals(), &mcphttp.Options{Logger: quiet, Heartbeat: -1})
		s := serve(t, handler)
		ctx, cancel := context.WithCancel(t.Context())
		stream := read(t, s.do(s.request(ctx, http.MethodGet, "", header{"Accept": "text/event-stream"})))
		endpoint, _ := stream.next()
		address, err := s.request(ctx, http.MethodPost, "", nil).URL.Parse(endpoint.Data)
		if err != nil {
			t.Fatal(err)
		}
		s.query = address.RawQuery
		for _, message := range []string{initialize("2024-11-05"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`} {
			s.post(message, nil)
		}
		stream.message() // the response to initialize
		text = s.transcribe(method, body, h)
		synctest.Wait()
		for len(stream.events) > 0 {
			e, _ := stream.next()
			text += fmt.Sprintf(" | %s %s", e.Type, e.Data)
		}
		cancel()
		if err := handler.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		s.close()
	})
	return sseSession.ReplaceAllString(text, "sessionId=...")
}

// The responses of an HTTP+SSE server to requests with a changed method, header or body.
func TestSSETranscripts(t *testing.T) {
	for name, test := range map[string]struct{ method, body string }{
		"get": {http.MethodGet, ""}, "post": {http.MethodPost, call(1, "late")},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			expected := sseScene(t, test.method, test.body, nil)
			fmt.Fprintf(&text, "> %s %s\n  %s\n", test.method, test.body, expected)
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions, http.MethodPut, http.MethodHead} {
				golden.WriteDifference(&text, method, expected, sseScene(t, method, test.body, nil))
			}
			for _, key := range slices.Sorted(maps.Keys(oddHeaders)) {
				for _, value := range oddHeaders[key] {
					golden.WriteDifference(&text, key+": "+value, expected, sseScene(t, test.method, test.body, header{key: value}))
				}
			}
			for _, body := range oddBodies {
				if test.method == http.MethodPost {
					golden.WriteDifference(&text, body, expected, sseScene(t, test.method, body, nil))
				}
			}
			golden.Check(t, "transcript-sse-"+name, text.String())
		})
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcphttp"
)

// oddHeaders are possible values of request headers. "" omits the header.
var oddHeaders = map[string][]string{
	"Accept":               {"", "application/json", "text/event-stream", "*/*", "text/*;q=0.5", "application/json;q=0", "text/html", "application/json;q=x, text/event-stream;q=0.000"},
	"Content-Type":         {"", "text/plain", "application/json; charset=utf-8", "application/json-patch+json", "application/json;"},
	"Origin":               {"http://localhost", "https://evil.example", "null", "http://localhost:81", "::"},
	"Host":                 {"127.0.0.1", "evil.example", "[::1]:80", ":80"},
	"Sec-Fetch-Site":       {"cross-site", "same-origin", "none"},
	"MCP-Protocol-Version": {"", "2026-07-28", "2025-11-25", "2024-11-05", "1999-01-01", "x"},
	"Mcp-Method":           {"", "tools/list", "tools/call"},
	"Mcp-Name":             {"", "hello", "add", "=?base64?aGVsbG8=?=", "=?base64?!?="},
	"Mcp-Session-Id":       {"", "unknown", "a b"},
	"Last-Event-Id":        {"x", "0-0", "1-1", "0-99", "99-1"},
}

var oddBodies = []string{
	"", "{", "null", "[]", "{}", "[{}]", `"x"`, `{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","id":1,"method":"nothing"}`,
	`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]`, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
}

// changing matches values that differ each time.
var changing = regexp.MustCompile(`(Mcp-Session-Id: )\S+|("requestState":)"[^"]*"`)

// transcribe sends a request and formats the response. Of a stream that does not end, it
// formats the beginning.
func (s *site) transcribe(method, body string, h header) string {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	r := s.request(ctx, method, body, h)
	if method == http.MethodGet {
		r.Body, r.ContentLength = nil, 0
	}
	res := s.do(r)
	defer res.Body.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "%d", res.StatusCode)
	res.Header.Del("Date")
	for _, name := range slices.Sorted(maps.Keys(res.Header)) {
		fmt.Fprintf(&b, "; %s: %s", name, strings.Join(res.Header[name], "; "))
	}
	text := make([]byte, 1<<16)
	var n int
	if method == http.MethodGet && res.StatusCode == http.StatusOK {
		n, _ = res.Body.Read(text) // the stream does not end
	} else {
		n, _ = io.ReadFull(res.Body, text)
	}
	return changing.ReplaceAllString(b.String(), "$1$2...") + " " + strings.ReplaceAll(changing.ReplaceAllString(string(text[:n]), "$1$2..."), "\n", `\n`)
}

// The responses of a server to requests with a changed method, header or body.
func TestTranscripts(t *testing.T) {
	modernBody, modernHeader := callModern("hello")
	listBody, listHeader := modern("tools/list", "", "")
	talkBody, talkHeader := callModern("late")
	for name, test := range map[string]struct {
		method, body string
		header       header
		session      bool
	}{
		"modern":     {http.MethodPost, modernBody, modernHeader, false},
		"list":       {http.MethodPost, listBody, listHeader, false},
		"talk":       {http.MethodPost, talkBody, talkHeader, false},
		"initialize": {http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, header{}, false},
		"legacy":     {http.MethodPost, call(1, "hello"), header{}, true},
		"legacytalk": {http.MethodPost, call(1, "late"), header{}, true},
		"get":        {http.MethodGet, "", header{}, true},
		"delete":     {http.MethodDelete, "", header{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, newHandler(t, refusals(), &mcphttp.Options{Logger: quiet}))
			play := func(method, body string, h header) string {
				if test.session {
					h = with(s.open("2025-11-25"), h)
				}
				return s.transcribe(method, body, h)
			}
			var text bytes.Buffer
			expected := play(test.method, test.body, test.header)
			fmt.Fprintf(&text, "> %s %v %s\n  %s\n", test.method, test.header, test.body, expected)
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions, http.MethodPut, http.MethodHead} {
				golden.WriteDifference(&text, method, expected, play(method, test.body, test.header))
			}
			for _, key := range slices.Sorted(maps.Keys(oddHeaders)) {
				for _, value := range oddHeaders[key] {
					golden.WriteDifference(&text, key+": "+value, expected, play(test.method, test.body, with(test.header, header{key: value})))
				}
			}
			for _, body := range oddBodies {
				if test.method == http.MethodPost {
					golden.WriteDifference(&text, body, expected, play(test.method, body, test.header))
				}
			}
			golden.Check(t, "transcript-"+name, text.String())
		})
	}
}

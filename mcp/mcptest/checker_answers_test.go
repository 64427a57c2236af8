// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/transport"
)

// Clients ignore duplicate answers and answers to requests that were not sent. The wrapped
// stream reports them.
func TestAnswersOnStreams(t *testing.T) {
	for name, test := range map[string]struct {
		answers []string
		faults  int
	}{
		"once":       {[]string{`{"jsonrpc":"2.0","id":1,"result":{}}`}, 0},
		"twice":      {[]string{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`}, 1},
		"other":      {[]string{`{"jsonrpc":"2.0","id":2,"result":{}}`}, 1},
		"a question": {[]string{`{"jsonrpc":"2.0","id":2,"method":"ping"}`}, 0},
		"a batch":    {[]string{`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]`}, 1},
	} {
		r := &reports{TB: t}
		near, far := transport.Pipe()
		s := &checkedStream{near, newPendingAnswers(r)}
		if err := s.Write(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)); err != nil {
			t.Fatal(err)
		}
		for _, answer := range test.answers {
			if err := far.Write(t.Context(), []byte(answer)); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Read(t.Context()); err != nil || string(got) != answer {
				t.Fatalf("read %s, %v", got, err)
			}
		}
		if len(r.texts) != test.faults {
			t.Errorf("%s: reported %q", name, r.texts)
		}
	}
}

func TestAnswersOverHTTP(t *testing.T) {
	const once, other = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":{}}`
	for body, faults := range map[string]int{
		once: 0, other: 1,
		"data: " + once + "\n\n":                                      0,
		"id: 1\ndata: " + once + "\n\ndata: " + once + "\n\n":         1,
		"data: " + once + "\n\ndata: " + other + "\n\n: comment\n":    1,
		`data: {"jsonrpc":"2.0","method":"a"}` + "\n\ndata: " + other: 0, // then the stream breaks
	} {
		r := &reports{TB: t}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if body[0] != '{' {
				w.Header().Set("Content-Type", typeStream)
			}
			_, _ = io.WriteString(w, body)
		}))
		defer s.Close()
		client := &http.Client{Transport: &checkedHTTP{tb: r, next: http.DefaultTransport}}
		res, err := client.Post(s.URL, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(got) != body || len(r.texts) != faults {
			t.Errorf("%q: read %q, %v, reported %q", body, got, err, r.texts)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// seeds returns messages of every kind, as clients send them.
func seeds() []string {
	var all []string
	for _, m := range []struct{ method, params string }{
		{"server/discover", ""}, {"tools/list", ""}, {"tools/list", `"cursor":"x"`},
		{"tools/call", `"name":"hello"`}, {"tools/call", `"name":"hello","arguments":{"x":1}`}, {"tools/call", `"name":"none"`},
		{"tools/call", `"name":"ask","inputResponses":{"first":{"action":"accept","content":{"name":"Ada"}}},"requestState":"x"`},
		{"prompts/list", ""}, {"prompts/get", `"name":"none","arguments":{"a":"b"}`},
		{"resources/list", ""}, {"resources/templates/list", ""}, {"resources/read", `"uri":"test://none"`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"none"},"argument":{"name":"a","value":""}`},
		{"vendor/unknown", `"a":[1,2,{"b":null}]`},
	} {
		body, _ := modern(m.method, "", m.params)
		all = append(all, body)
	}
	return append(all, initialize(mcp.LegacyVersions()[0]), call(1, "hello"), `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":null,"method":"x"}`,
		`[]`, `{}`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, "\xff", `{"jsonrpc":"2.0","id":1e999,"method":"ping"}`)
}

// alarm is a slog.Handler that records logged panics.
type alarm struct {
	slog.Handler
	panics bytes.Buffer
}

func (a *alarm) Enabled(context.Context, slog.Level) bool { return true }

func (a *alarm) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "panicked") {
		r.Attrs(func(attr slog.Attr) bool {
			a.panics.WriteString(attr.String() + "\n")
			return true
		})
	}
	return nil
}

// For any message, no transport panics, and all transports give the same answer to a modern
// request.
func FuzzTransports(f *testing.F) {
	for _, seed := range seeds() {
		f.Add([]byte(seed))
	}
	bell := &alarm{Handler: slog.DiscardHandler}
	logger := slog.New(bell)
	mux := tools()
	handler := mcphttp.NewHandler(mux, &mcphttp.Options{Logger: logger})
	f.Fuzz(func(t *testing.T, message []byte) {
		m, err := transport.ParseMessage(message)
		if m.Method != "" && m.Method == mcp.MethodListen || len(message) > 64<<10 {
			t.Skip("it would last")
		}
		req, problem := core.NewRequest(&m)
		if err == nil {
			err = problem
		}
		modern := err == nil && m.IsRequest() && core.IsModern(req)
		posted := post(handler, message, req)
		streamed := overStream(t, mux, message, modern, logger)
		if bell.panics.Len() > 0 {
			t.Fatalf("%q: %s", message, bell.panics.String())
		}
		if !modern || req.Version() != mcp.LatestVersion {
			return
		}
		if a, b := unsealed(posted), unsealed(streamed); a != b {
			t.Errorf("%q: over HTTP\n%s\nas a stream\n%s", message, a, b)
		}
	})
}

func post(h http.Handler, message []byte, req *mcp.Request) []byte {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", bytes.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if core.IsModern(req) {
		r.Header.Set("Mcp-Protocol-Version", req.Version())
		r.Header.Set("Mcp-Method", req.Method)
		r.Header.Set("Mcp-Name", transport.EncodeHeaderValue(req.Name()))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.Bytes()
}

// overStream sends a message followed by a second one. The answer to the second shows that
// the first has none, unless answered is set: such an answer may arrive later.
func overStream(t *testing.T, h mcp.Handler, message []byte, answered bool, logger *slog.Logger) (answer []byte) {
	t.Helper()
	client, server := transport.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- mcpstdio.ServeStream(context.Background(), h, server, &mcpstdio.StreamOptions{Logger: logger, DrainTimeout: -1})
	}()
	defer func() { <-ended }()
	defer client.Close()
	fence, _ := modern("server/discover", "", "")
	fence = strings.Replace(fence, `"id":1`, `"id":"fence"`, 1)
	for _, m := range [][]byte{message, []byte(fence)} {
		if err := client.Write(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for fenced := false; !fenced || answered && answer == nil; {
		data, err := client.Read(t.Context())
		if err != nil {
			t.Fatalf("%q: %v", message, err)
		}
		switch m, err := transport.ParseMessage(data); {
		case err != nil:
			t.Fatalf("%q is answered with %q", message, data)
		case m.ID == mcp.StringID("fence") && !fenced:
			fenced = true
		case m.IsResponse():
			answer = bytes.Clone(data)
		}
	}
	return answer
}

// unsealed returns an answer without the sealed state, which differs each time.
func unsealed(answer []byte) string {
	var m map[string]any
	if json.Unmarshal(answer, &m) != nil {
		return string(answer)
	}
	if result, ok := m["result"].(map[string]any); ok && result["requestState"] != nil {
		result["requestState"] = "sealed"
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err.Error() // cannot fail: the value was decoded from JSON
	}
	return string(text)
}

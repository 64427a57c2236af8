// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// canned answers every request with the same response, without a network.
type canned struct{ kind, body string }

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, Header: http.Header{"Content-Type": {c.kind}},
		Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body)), Request: r,
	}, nil
}

const cannedResult = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"hello"}]}}`

// calling returns the benchmarked call, made through a transport.
func calling(tb testing.TB, answer canned) func() {
	opts := &mcphttp.TransportOptions{Client: &http.Client{Transport: answer}, Logger: quiet}
	wire, err := mcphttp.NewTransport("http://localhost/mcp", opts).Connect(tb.Context(), func(*transport.Message) {})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = wire.Close() })
	m := toolCall(1, mcp.LatestVersion, "hello")
	return func() {
		if r, err := wire.Call(tb.Context(), m); err != nil || r.Error != nil {
			tb.Fatalf("%+v, %v", r, err)
		}
	}
}

// floor returns the minimum that a net/http client does for a call.
func floor(tb testing.TB, answer canned) func() {
	client := &http.Client{Transport: answer}
	m := toolCall(1, mcp.LatestVersion, "hello")
	return func() {
		req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, "http://localhost/mcp", bytes.NewReader(m.Body))
		if err != nil {
			tb.Fatal(err)
		}
		req.Header["Content-Type"] = []string{"application/json"}
		res, err := client.Do(req)
		if err != nil {
			tb.Fatal(err)
		}
		body := make([]byte, res.ContentLength)
		_, _ = io.ReadFull(res.Body, body)
		_ = res.Body.Close()
		if _, err := transport.ParseMessage(body); err != nil {
			tb.Fatal(err)
		}
	}
}

func BenchmarkTransport(b *testing.B) {
	asJSON, asStream := canned{"application/json", cannedResult}, canned{"text/event-stream", "data: " + cannedResult + "\n\n"}
	for name, call := range map[string]func(){"json": calling(b, asJSON), "stream": calling(b, asStream), "floor": floor(b, asJSON)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// The transport's allocations in addition to those of net/http are bounded.
func TestTransportAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	answer := canned{"application/json", cannedResult}
	least, got := testing.AllocsPerRun(100, floor(t, answer)), testing.AllocsPerRun(100, calling(t, answer))
	if extra := got - least; extra > 17 {
		t.Errorf("a call takes %v allocations, %v more than net/http", got, extra)
	}
}

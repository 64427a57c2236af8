// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// Old servers report a missing resource only by an error code. Callers get the current
// error.
func TestBareResourceNotFound(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(string(body), `"initialize"`):
			m, _ := transport.ParseMessage(body)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{}},"serverInfo":{"name":"s","version":"1"}}}`)
		case strings.Contains(string(body), `resources/read`):
			m, _ := transport.ParseMessage(body)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"error":{"code":-32002,"message":"resource not found"}}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer s.Close()
	conn, err := mcp.NewClient("c", "1", &mcp.ClientOptions{Version: "2025-11-25"}).Connect(t.Context(), mcphttp.NewTransport(s.URL, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "demo://x"})
	if mcp.CodeOf(err) != mcp.CodeInvalidParams || !strings.Contains(err.Error(), "not found") {
		t.Errorf("%v: code %d, want %d", err, mcp.CodeOf(err), mcp.CodeInvalidParams)
	}
}

// A client is not asked questions that its revision does not support, whatever it declares.
func TestURLQuestionToOldRevision(t *testing.T) {
	mux := tools()
	mux.Tool("visit", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return "visited", mcp.ElicitURL(ctx, "v", "Go there", "https://example.com/visit")
	}, nil))
	s := serve(t, newHandler(t, mux, nil))
	for _, version := range []string{"2025-03-26", "2025-06-18"} {
		body := strings.Replace(initialize(version), `{"elicitation":{}}`, `{"elicitation":{"form":{},"url":{}}}`, 1)
		if !strings.Contains(body, "url") {
			t.Fatalf("no capabilities in %s", body)
		}
		res := whole(t, s.post(body, nil))
		h := header{"Mcp-Session-Id": res.header.Get("Mcp-Session-Id")}
		s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, h)
		if got := whole(t, s.post(call(1, "visit"), h)); !strings.Contains(got.body, "did not declare a capability") {
			t.Errorf("%s: %s", version, got.body)
		}
	}
}

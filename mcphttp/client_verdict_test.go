// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// A client remembers the era of a server, and detects it again, once, if it has changed.
func TestVerdict(t *testing.T) {
	var requests atomic.Int64
	handler := newHandler(t, tools(), nil)
	old, modern := legacyOnly(handler, answers(400, "")), http.Handler(handler)
	onlyModern := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") != mcp.LatestVersion {
			answers(404, "")(w, r)
			return
		}
		modern.ServeHTTP(w, r)
	})
	var current atomic.Pointer[http.Handler]
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		(*current.Load()).ServeHTTP(w, r)
	}))
	client := mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: quiet})
	transport := mcphttp.NewTransport("http://localhost/mcp", s.options(nil))
	for _, step := range []struct {
		name    string
		server  http.Handler
		version string
		most    int64 // requests to connect and close
	}{
		{"not known", old, "2025-11-25", 5},
		{"known to be old", old, "2025-11-25", 4},
		{"old no more", onlyModern, mcp.LatestVersion, 3},
		{"known to be modern", onlyModern, mcp.LatestVersion, 1},
		{"old again", old, "2025-11-25", 6},
	} {
		current.Store(&step.server)
		requests.Store(0)
		conn, err := client.Connect(t.Context(), transport)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if conn.Version() != step.version {
			t.Errorf("%s: it speaks %s", step.name, conn.Version())
		}
		if err := conn.Close(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if n := requests.Load(); n > step.most {
			t.Errorf("%s: %d requests, want at most %d", step.name, n, step.most)
		}
	}
}

// Connecting to a server that is not running reports only that.
func TestConnectToNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_, err = mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: quiet}).
		Connect(t.Context(), mcphttp.NewTransport("http://"+l.Addr().String(), nil))
	if err == nil || strings.Contains(err.Error(), "neither era") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("connecting: %v", err)
	}
}

// A subscription outlives its HTTP response, in both eras. Changes that happen while it is
// interrupted are reported afterwards.
func TestListenSurvivesCut(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		t.Run(version, func(t *testing.T) {
			mux := tools()
			endpoint := newHandler(t, mux, nil)
			server := httptest.NewServer(endpoint)
			defer server.Close()
			defer func() { _ = endpoint.Shutdown(context.Background()) }()
			conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: version, Logger: quiet}).
				Connect(t.Context(), mcphttp.NewTransport(server.URL, &mcphttp.TransportOptions{Logger: quiet}))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			heard := make(chan mcp.Change, 100)
			sub, err := conn.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(c mcp.Change) { heard <- c })
			if err != nil {
				t.Fatal(err)
			}
			late := time.After(20 * time.Second)
			for i := range 2 {
				server.CloseClientConnections()
				mux.Tool("added"+string(rune('a'+i)), uncalled)
				select {
				case c := <-heard:
					if c.Method != mcp.NotificationToolsListChanged {
						t.Errorf("heard %+v", c)
					}
				case <-sub.Done():
					t.Fatalf("the subscription ended: %v", sub.Err())
				case <-late:
					t.Fatalf("cut %d: the change was missed", i+1)
				}
			}
			sub.Close()
			<-sub.Done()
			if sub.Err() != nil {
				t.Error(sub.Err())
			}
		})
	}
}

// Some servers, for example in .NET and PHP, start a body with a byte order mark.
func TestByteOrderMark(t *testing.T) {
	answer := `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`
	status := http.StatusOK
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "\ufeff"+answer)
	}))
	for _, version := range both {
		if r, err := s.link(nil).Call(t.Context(), toolCall(7, version, "a")); err != nil || string(r.Result) != `{"content":[]}` {
			t.Errorf("%s: %+v, %v", version, r, err)
		}
	}
	status, answer = http.StatusNotFound, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}`
	if r, err := s.link(nil).Call(t.Context(), toolCall(7, mcp.LatestVersion, "a")); err != nil || r.Error == nil || r.Error.Code != mcp.CodeMethodNotFound {
		t.Errorf("%+v, %v", r, err)
	}
}

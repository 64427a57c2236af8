// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// A server that opens sessions and does not know them any more makes its client open the
// next one, but not at once, and not faster and faster.
func TestFindingS27LostSessionsHaveAFloor(t *testing.T) {
	for _, pings := range []int{http.StatusOK, http.StatusNotFound} {
		synctest.Test(t, func(t *testing.T) {
			var requests atomic.Int64
			s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := requests.Add(1)
				body, _ := io.ReadAll(r.Body)
				m, _ := transport.ParseMessage(body)
				switch {
				case m.Method == "":
					w.WriteHeader(http.StatusNotFound)
				case m.Method == "initialize":
					w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", n))
					say(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID))
				case m.IsNotification():
					w.WriteHeader(http.StatusAccepted)
				case pings == http.StatusOK:
					say(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
				default:
					w.WriteHeader(pings)
				}
			}))
			conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: quiet, Version: "2025-11-25"}).
				Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(10 * time.Minute)
			if n := requests.Load(); n > 200 {
				t.Errorf("%d requests", n)
			}
			_ = conn.Close()
		})
	}
}

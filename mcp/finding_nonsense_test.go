// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// connectToStream connects to a server that only answers the handshake, and returns the
// other end of the stream.
func connectToStream(t *testing.T, opts *mcp.ClientOptions) (*mcp.Conn, transport.Stream) {
	t.Helper()
	near, far := transport.Pipe()
	go func() {
		for {
			data, err := far.Read(context.Background())
			if err != nil {
				return
			}
			if m, err := transport.ParseMessage(data); err == nil && m.Method != "" {
				if answer, _ := speaksLegacy(0, m.Method, m.ID.String()); answer != "" {
					_ = far.Write(context.Background(), []byte(answer))
				}
			}
		}
	}()
	return connectTo(t, transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }), opts), far
}

// A batch of many messages that are nothing costs its client no more than it is long, and
// not a line of log each.
func TestFindingW2BatchOfNothing(t *testing.T) {
	const size = 8 << 20
	for name, batch := range map[string]string{
		"numbers":     "[0" + strings.Repeat(",0", size/2) + "]",
		"not closed":  "[0" + strings.Repeat(",0", size/2),
		"objects":     "[{}" + strings.Repeat(",{}", size/3) + "]",
		"nested deep": strings.Repeat("[", size),
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			c, far := connectToStream(t, &mcp.ClientOptions{Version: "2025-11-25", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := far.Write(t.Context(), []byte(batch)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 4*size {
				t.Errorf("%s: %d MiB for %d", name, used>>20, size>>20)
			}
			if lines := strings.Count(log.String(), "\n"); lines == 0 || lines > 40 {
				t.Errorf("%s: %d lines of log", name, lines)
			}
			if err := c.Ping(t.Context()); err != nil && mcp.CodeOf(err) != mcp.CodeMethodNotFound {
				t.Errorf("%s: %v", name, err)
			}
			_ = c.Close()
		})
	}
}

// A server that says nothing but nonsense does not fill the disk of its client, and what is
// logged of it is short.
func TestFindingW2NonsenseIsLoggedSparsely(t *testing.T) {
	for _, nonsense := range []string{
		`{}`, `nonsense`, `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 10_000) + `","result":{"a":1,"a":2}}`,
		`{"jsonrpc":"2.0","id":1000,"result":{"` + strings.Repeat("x", 10_000) + `":1,"` + strings.Repeat("x", 10_000) + `":2}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			c, far := connectToStream(t, &mcp.ClientOptions{Version: "2025-11-25", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			for range 10_000 {
				if err := far.Write(t.Context(), []byte(nonsense)); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			_ = c.Close()
			if lines := strings.Count(log.String(), "\n"); lines < 16 || lines > 40 || log.Len() > 40_000 {
				t.Errorf("%d lines of log, %d bytes: %.2000s", lines, log.Len(), log.String())
			}
		})
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

const r202511 = "2025-11-25"

// An olderClient is a client of an older revision that sends raw messages.
type olderClient struct {
	t          testing.TB
	stream     transport.Stream
	ids        int
	transcript strings.Builder
}

// dialOlder opens a session with a server. The client declares the given capabilities.
func dialOlder(t testing.TB, h mcp.Handler, version, capabilities string) *olderClient {
	t.Helper()
	near, far := transport.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- mcpstdio.ServeStream(ctx, h, far, &mcpstdio.StreamOptions{DrainTimeout: -1, Logger: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		near.Close()
		cancel()
		<-served
	})
	c := &olderClient{t: t, stream: near}
	c.call("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"old","version":"1"}}`, version, capabilities))
	c.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *olderClient) write(raw string) {
	c.t.Helper()
	if err := c.stream.Write(c.t.Context(), []byte(raw)); err != nil {
		c.t.Fatal(err)
	}
}

// call sends a request and returns its response, which is the next message.
func (c *olderClient) call(method, params string) (response struct {
	Result json.RawMessage
	Error  *mcp.Error
}) {
	c.t.Helper()
	c.ids++
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.ids, method, params))
	raw, err := c.stream.Read(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	fmt.Fprintln(&c.transcript, string(raw))
	if err := json.Unmarshal(raw, &response); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	return response
}

// An olderServer is a server of 2025-11-25 whose results are scripted.
type olderServer struct {
	results map[string]string // by method
	heard   []string          // the params of tools/call
}

// newOlderServer returns a server whose tools forbid, allow and require a task.
func newOlderServer(capabilities string) *olderServer {
	const object = `"inputSchema":{"type":"object"}`
	return &olderServer{results: map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"serverInfo":{"name":"farm","version":"1"}}`,
		mcp.MethodListTools: `{"tools":[{"name":"odd",` + object + `,"execution":7},{"name":"plain",` + object + `,"execution":{"taskSupport":"forbidden"}},` +
			`{"name":"encode",` + object + `,"execution":{"taskSupport":"optional"}},{"name":"long",` + object + `,"execution":{"taskSupport":"required"}}]}`,
		mcp.MethodCallTool: `{"content":[{"type":"text","text":"av1"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}`,
	}}
}

func (s *olderServer) connect(context.Context) (transport.Stream, error) {
	client, server := transport.Pipe()
	go func() {
		defer server.Close()
		for {
			data, err := server.Read(context.Background())
			if err != nil {
				return
			}
			m, err := transport.ParseMessage(data)
			if err != nil || !m.IsRequest() {
				continue
			}
			if m.Method == mcp.MethodCallTool {
				s.heard = append(s.heard, string(m.Params))
				status := `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t1","status":"working","ttl":null}}`
				_ = server.Write(context.Background(), []byte(status))
			}
			answer := transport.AppendResult(nil, m.ID, json.RawMessage(s.results[m.Method]))
			if s.results[m.Method] == "" {
				answer = transport.AppendError(nil, m.ID, &transport.Error{Code: mcp.CodeMethodNotFound, Message: "no " + m.Method})
			}
			_ = server.Write(context.Background(), answer)
		}
	}()
	return client, nil
}

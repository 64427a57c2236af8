// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// A legacy server is asked for log messages if it declares logging. If it refuses, the
// connection goes on without.
func TestClientLogLevel(t *testing.T) {
	const refusal = `"error":{"code":-32601,"message":"no such method"}`
	for name, test := range map[string]struct {
		capabilities, answer string
		asked, warned        bool
	}{
		"none":    {`{}`, refusal, false, false},
		"takes":   {`{"logging":{}}`, `"result":{}`, true, false},
		"refuses": {`{"logging":{}}`, refusal, true, true},
		"invalid": {`{"logging":{}}`, `"error":{"code":-32600,"message":"not now"}`, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan bool, 8)
			log := new(bytes.Buffer)
			opts := &mcp.ClientOptions{LogLevel: mcp.LoggingLevelInfo, Version: "2025-06-18", Logger: slog.New(slog.NewTextHandler(log, nil))}
			c, err := mcp.NewClient("c", "v1", opts).Connect(t.Context(), fakeServer(func(method, id string) (string, bool) {
				switch method {
				case "initialize":
					return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"old","version":"1"}}}`, id, "2025-06-18", test.capabilities), true
				case "logging/setLevel":
					asked <- true
					return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, test.answer), true
				case "ping":
					return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id), true
				}
				return "", true
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			if (len(asked) == 1) != test.asked || strings.Contains(log.String(), "level=WARN") != test.warned {
				t.Errorf("asked %d times; log: %s", len(asked), log)
			}
		})
	}
}

// If it does not answer at all, connecting fails.
func TestClientLogLevelUnanswered(t *testing.T) {
	opts := &mcp.ClientOptions{LogLevel: mcp.LoggingLevelInfo, Version: "2025-06-18"}
	_, err := mcp.NewClient("c", "v1", opts).Connect(t.Context(), fakeServer(func(method, id string) (string, bool) {
		if method != "initialize" {
			return "", method != "logging/setLevel" // it ends
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"logging":{}},"serverInfo":{"name":"old","version":"1"}}}`, id, "2025-06-18"), true
	}))
	if err == nil {
		t.Error("there is a connection")
	}
}

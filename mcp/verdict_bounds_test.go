// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

func streamTo(s transport.Stream) transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) { return s, nil })
}

func idOf(message []byte) string {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(message, &m)
	return string(m.ID)
}

// Whether an error to server/discover is the answer of an older server, which is asked to
// open a session, or one that a newer server gives.
func TestVerdictByCode(t *testing.T) {
	for code, older := range map[int]bool{
		mcp.CodeMethodNotFound: true, mcp.CodeInvalidRequest: true, mcp.CodeInvalidParams: true, mcp.CodeInternalError: true, -32000: true, 1: true,
		400: true, 404: true, 405: true, 500: true,
		401: false, 403: false, 407: false, 429: false, // as HTTP has them: the caller is refused
		mcp.CodeHeaderMismatch: false, mcp.CodeMissingCapability: false,
	} {
		var mu sync.Mutex
		var asked []string
		server := fakeServer(func(method, id string) (string, bool) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, method)
			switch method {
			case "initialize":
				return resultFor(id, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`), true
			case mcp.MethodDiscover:
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, id, code), true
			}
			return "", true
		})
		c, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), server)
		if err == nil {
			_ = c.Close()
		}
		mu.Lock()
		if (err == nil) != older || slices.Contains(asked, "initialize") != older || !older && mcp.CodeOf(err) != code {
			t.Errorf("%d: asked %q, then %v", code, asked, err)
		}
		mu.Unlock()
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware"
)

// A server that asks about a resource and lets everybody keep what it reads: cache hints are
// mandatory, also in results that depend on an answer, which clients must not keep.
func askingServer(t *testing.T, reads *int) transport.Transport {
	t.Helper()
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		client, server := transport.Pipe()
		go func() {
			for {
				data, err := server.Read(context.Background())
				if err != nil {
					return
				}
				var m struct {
					ID     json.RawMessage
					Method string
					Params json.RawMessage
				}
				_ = json.Unmarshal(data, &m)
				result := `{"resultType":"complete","ttlMs":60000,"cacheScope":"public","contents":[{"uri":"a:","text":"for Ada"}]}`
				switch {
				case m.Method == mcp.MethodDiscover:
					result = `{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["` + mcp.LatestVersion + `"],"capabilities":{"resources":{}}}`
				case !strings.Contains(string(m.Params), "inputResponses"):
					*reads++
					result = `{"resultType":"input_required","requestState":"s","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}}}`
				}
				_ = server.Write(context.Background(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
			}
		}()
		return client, nil
	})
}

// A result that depends on an answer of the user is not kept, although the request that the
// Cache sees had no answer.
func TestCacheKeepsNoAnswers(t *testing.T) {
	reads, asked := 0, 0
	client := mcp.NewClient("c", "v1", &mcp.ClientOptions{
		Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked++
			return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
		},
	})
	conn, err := client.Connect(t.Context(), askingServer(t, &reads))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Use(middleware.NewCache(nil).Middleware)
	for range 2 {
		if _, err := conn.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "a:"}); err != nil {
			t.Fatal(err)
		}
	}
	if reads != 2 || asked != 2 {
		t.Errorf("the server was asked %d times, and the user %d times; want 2 and 2", reads, asked)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// The sender of a call learns that its answer did not get to the older server that asked,
// and can send it again.
func TestForwardedAnswerNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.Pipe()
		served := make(chan error, 1)
		go func() { served <- mcpstdio.ServeStream(t.Context(), welcoming(), far, nil) }()
		var lossy atomic.Bool // answers to questions get lost
		faulty := mcptest.Faulty(transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }), func(_ int, m *transport.Outgoing) mcptest.Fault {
			if m.Method == "" && lossy.Load() {
				return mcptest.Fault{Err: errors.New("the network is down")}
			}
			return mcptest.Fault{}
		})
		c := connectTo(t, faulty, &mcp.ClientOptions{Version: "2025-11-25", Forward: true, Logger: quiet().Logger})
		call := func(params map[string]any) (mcp.Result, error) {
			res, _, err := mcptest.Do(t, c, mcptest.NewRequest(mcp.MethodCallTool, params))
			return res, err
		}
		res, err := call(map[string]any{"name": "greet"})
		asked, ok := res.(*mcp.InputRequired)
		if !ok || len(asked.InputRequests) != 1 {
			t.Fatalf("got %+v, %v", res, err)
		}
		answers := map[string]any{}
		for key := range asked.InputRequests {
			answers[key] = json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)
		}
		again := map[string]any{"name": "greet", "requestState": asked.RequestState, "inputResponses": answers}
		lossy.Store(true)
		if res, err := call(again); mcp.CodeOf(err) != mcp.CodeInternalError {
			t.Errorf("the answer was not sent: got %+v, %v", res, err)
		}
		lossy.Store(false)
		res, err = call(again)
		if next, ok := res.(*mcp.InputRequired); !ok || len(next.InputRequests) != 1 {
			t.Errorf("the answer was sent again: got %+v, %v", res, err)
		}
		_ = c.Close()
		<-served
	})
}

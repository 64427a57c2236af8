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
	"time"

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

// A call that has ended without the answer to its question has an outcome, also if the answer
// cannot be sent any more.
func TestForwardedAnswerTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- mcpstdio.ServeStream(t.Context(), welcoming(), far, &mcpstdio.StreamOptions{AskTimeout: time.Minute})
		}()
		faulty := mcptest.Faulty(transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }), func(_ int, m *transport.Outgoing) mcptest.Fault {
			if m.Method == "" {
				return mcptest.Fault{Err: errors.New("the server waits for no answer")}
			}
			return mcptest.Fault{}
		})
		c := connectTo(t, faulty, &mcp.ClientOptions{Version: "2025-11-25", Forward: true, Logger: quiet().Logger})
		res, _, err := mcptest.Do(t, c, mcptest.NewRequest(mcp.MethodCallTool, map[string]any{"name": "greet"}))
		asked, ok := res.(*mcp.InputRequired)
		if !ok {
			t.Fatalf("got %+v, %v", res, err)
		}
		<-time.After(2 * time.Minute)
		began := time.Now()
		res, _, err = mcptest.Do(t, c, mcptest.NewRequest(mcp.MethodCallTool, map[string]any{"name": "greet", "requestState": asked.RequestState}))
		if result, ok := res.(*mcp.CallToolResult); !ok || !result.IsError {
			t.Errorf("got %+v, %v", res, err)
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("it took %v", waited)
		}
		_ = c.Close()
		<-served
	})
}

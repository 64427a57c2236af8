// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// If the answer to a question of a 2025-11-25 server could not be sent, the question stays
// open and the caller can answer it again.
func TestOlderServerAnswerNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newOlderServer()
		s.question = olderAsks
		s.set("tasks/get", olderState("input_required"))
		var lossy atomic.Bool // answers to questions get lost
		faulty := mcptest.Faulty(transport.FromStream(s.connect), func(_ int, m *transport.Outgoing) mcptest.Fault {
			if m.Method == "" && lossy.Load() {
				return mcptest.Fault{Err: errors.New("the network is down")}
			}
			return mcptest.Fault{}
		})
		opts := options()
		opts.Version = r202511
		h := start(t, mcptest.Dial(t, faulty, opts), "encode")
		answers := map[string]json.RawMessage{}
		for key := range state(t, h).InputRequests {
			answers[key] = json.RawMessage(`{"action":"accept","content":{"codec":"av1"}}`)
		}
		lossy.Store(true)
		if err := h.Update(t.Context(), answers); err == nil {
			t.Error("the answer was not sent, and tasks/update succeeds")
		}
		lossy.Store(false)
		for key := range answers {
			if _, ok := state(t, h).InputRequests[key]; !ok {
				t.Error("the question is not open any more")
			}
		}
		if err := h.Update(t.Context(), answers); err != nil {
			t.Error("tasks/update:", err)
		}
		if open := state(t, h).InputRequests; len(answers) != 1 || len(open) != 0 {
			t.Errorf("%d questions were asked, and %v are open", len(answers), open)
		}
	})
}

// If a caller gives up after it has answered a question of a task that it does not know of,
// the task is cancelled rather than left behind.
func TestOlderServerTaskGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newOlderServer()
		s.question = olderAsks
		s.answers[mcp.MethodCallTool] = []string{`"error":{"code":-32601,"message":"call it as a task"}`, `"result":` + olderCreated}
		s.set("tasks/result") // the task keeps working
		opts := forwarding(r202511)
		opts.Extensions = nil
		c := mcptest.Dial(t, transport.FromStream(s.connect), opts)
		params := map[string]any{"name": "long"}
		res, _, err := mcptest.Do(t, c, sender(nil, false).NewRequest(mcp.MethodCallTool, params))
		asked, ok := res.(*mcp.InputRequired)
		if !ok {
			t.Fatalf("got %+v, %v", res, err)
		}
		params["requestState"] = asked.RequestState
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if res, err := c.ServeMCP(ctx, sender(nil, false).NewRequest(mcp.MethodCallTool, params)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %+v, %v", res, err)
		}
		synctest.Wait()
		if text := s.transcript.String(); !strings.Contains(text, `"method":"tasks/cancel","params":{"taskId":"t1"}`) {
			t.Errorf("the task works on:\n%s", text)
		}
	})
}

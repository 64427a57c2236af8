// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// A question of a server of 2025-11-25 whose answer could not be sent stays open, and the
// caller can answer it again.
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

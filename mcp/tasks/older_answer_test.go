// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// A lossyTransport sends nothing but calls while it loses messages.
type lossyTransport struct {
	transport.Transport

	loses atomic.Bool
}

func (l *lossyTransport) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	c, err := l.Transport.Connect(ctx, receive)
	return &lossyConn{c, l}, err
}

type lossyConn struct {
	transport.Conn

	transport *lossyTransport
}

func (c *lossyConn) Send(ctx context.Context, m *transport.Outgoing) error {
	if c.transport.loses.Load() {
		return errors.New("the network is down")
	}
	return c.Conn.Send(ctx, m)
}

// A question of a server of 2025-11-25 whose answer could not be sent stays open, and the
// caller can answer it again.
func TestOlderServerAnswerNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newOlderServer()
		s.question = olderAsks
		s.set("tasks/get", olderState("input_required"))
		lossy := &lossyTransport{Transport: transport.FromStream(s.connect)}
		opts := options()
		opts.Version = r202511
		h := start(t, mcptest.Dial(t, lossy, opts), "encode")
		answers := map[string]json.RawMessage{}
		for key := range state(t, h).InputRequests {
			answers[key] = json.RawMessage(`{"action":"accept","content":{"codec":"av1"}}`)
		}
		lossy.loses.Store(true)
		if err := h.Update(t.Context(), answers); err == nil {
			t.Error("the answer was not sent, and tasks/update succeeds")
		}
		lossy.loses.Store(false)
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

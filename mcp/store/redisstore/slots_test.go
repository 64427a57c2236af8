// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

// When a cluster moves a topic to another node, it ends the subscriptions to the topic but
// keeps the connections. The store subscribes again and reports that messages may have been
// lost.
func TestSlotIsMoved(t *testing.T) {
	s := start(t, "--cluster-enabled", "yes")
	s.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	s.until("cluster_state:ok", "CLUSTER", "INFO")
	shared := open(t, connect(t, s.address()), nil)
	sub, err := shared.Subscribe(t.Context(), "topic")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	s.command("CLUSTER", "DELSLOTSRANGE", "0", "16383")
	s.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	s.until("cluster_state:ok", "CLUSTER", "INFO")
	lost := false
	for giveUp := time.Now().Add(patience); ; {
		if err := shared.Publish(t.Context(), "topic", []byte("after")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		message, err := sub.Next(ctx)
		cancel()
		lost = lost || errors.Is(err, store.ErrOverflow)
		if string(message) == "after" {
			break
		}
		if time.Now().After(giveUp) {
			t.Fatalf("no message arrives any more: %v", err)
		}
	}
	if !lost {
		t.Error("no loss was reported")
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// A server that ends a subscription answers it, and then says that it is
// cancelled (the pages on subscriptions and on cancellation differ). In the other
// order, the official TypeScript client takes the answer for one to a request that
// it never made.
func TestSubscriptionEndsWithItsResult(t *testing.T) {
	mux := mcp.NewMux("test", "v1.0.0", nil)
	mux.Tool("a", says("a"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ours, theirs := transport.Pipe()
	served := make(chan error, 1)
	go func() { served <- mcpstdio.ServeStream(ctx, mux, theirs, nil) }()

	listen := `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	if err := ours.Write(t.Context(), []byte(listen)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		data, err := ours.Read(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var message struct {
			ID     string `json:"id"`
			Method string `json:"method"`
		}
		if err := json.Unmarshal(data, &message); err != nil {
			t.Fatal(err)
		}
		got = append(got, message.Method+message.ID)
		stop() // when it is acknowledged
	}
	want := []string{mcp.NotificationAcknowledged, "l", mcp.NotificationCancelled}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Errorf("serving ended with %v", err)
	}
}

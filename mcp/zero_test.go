// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// A Request that a program writes out can be served, asked and copied.
func TestZeroRequest(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", says("hello"))
	for _, method := range []string{"tools/list", "server/discover", "tools/call", "completion/complete", "", "x"} {
		_, _ = mux.ServeMCP(t.Context(), &mcp.Request{Method: method})
	}
	req := &mcp.Request{Method: "tools/list"}
	res, err := mux.ServeMCP(t.Context(), req.Clone())
	if list, ok := res.(*mcp.ListToolsResult); err != nil || !ok {
		t.Errorf("got %v, %v", list, err)
	}
	req.FilterNotifications(func(string, json.RawMessage) bool { return true })
	if err := req.Notify(t.Context(), mcp.NotificationMessage, nil); !errors.Is(err, mcp.ErrNotDelivered) {
		t.Errorf("Notify returned %v", err)
	}
	if caps := req.ClientCapabilities(); caps == nil || req.Version() != "" || req.ClientInfo() != nil {
		t.Errorf("the peer is %v, %q, %v", caps, req.Version(), req.ClientInfo())
	}
}

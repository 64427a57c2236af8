// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A client that writes a URI in another way than the server, and is subscribed to it, gets its
// updates, under the URI that it has subscribed to.
func TestSubscriptionInAnotherSpelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("notes://{+path}", reads("text"))
		conn := mcptest.Connect(t, mux)
		for subscribed, updated := range map[string]string{
			"notes://caf%C3%A9":    "notes://caf%C3%A9",
			"notes://café":         "notes://caf%C3%A9",
			"notes://caf%c3%a9":    "notes://caf%C3%A9",
			"notes://%63af%c3%a9/": "notes://caf%C3%A9/menu",
		} {
			s, changes := listen(t, conn, mcp.SubscriptionFilter{ResourceSubscriptions: []string{subscribed}})
			mux.ResourceUpdated(updated)
			synctest.Wait()
			if got := received(changes); !slices.Equal(got, []string{subscribed}) {
				t.Errorf("subscribed to %s: received %q", subscribed, got)
			}
			s.Close()
			<-s.Done()
		}
	})
}

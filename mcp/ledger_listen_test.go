// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// heard is a notification as a subscriber gets it.
type heard struct {
	Method string `json:"method"`
	Params struct {
		Notifications mcp.SubscriptionFilter `json:"notifications"`
		Meta          struct {
			Subscription json.RawMessage `json:"io.modelcontextprotocol/subscriptionId"`
		} `json:"_meta"`
	} `json:"params"`
}

func hear(t *testing.T, p *peer) (h heard) {
	t.Helper()
	if err := json.Unmarshal([]byte(p.receive()), &h); err != nil {
		t.Fatal(err)
	}
	return h
}

// META-08, SUB-01, SUB-02, SUB-03, SUB-05, SUB-12, SUB-13: a subscription begins with
// its acknowledgement, tells of what was asked for and nothing else, and names
// itself by the id of its request, written as it was.
func TestSubscriptionOnTheWire(t *testing.T) {
	for _, id := range []string{`7`, `"7"`, `"a b"`} {
		mux := everything(quiet())
		p := newPeer(t, mux, eras[0])
		p.send(eras[0].request(id, "subscriptions/listen",
			`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["r:r","none:x"],"unknownThings":true}`))
		first := hear(t, p)
		if f := first.Params.Notifications; first.Method != mcp.NotificationAcknowledged || !f.ToolsListChanged || f.PromptsListChanged ||
			len(f.ResourceSubscriptions) != 1 || string(first.Params.Meta.Subscription) != id {
			t.Errorf("%s: it begins with %+v", id, first)
		}
		mux.Prompt("new", promptSays(""))
		mux.Resource("r:new", reads(""))
		mux.ResourceUpdated("r:new")
		mux.ResourceUpdated("r:r")
		if h := hear(t, p); h.Method != mcp.NotificationResourceUpdated || string(h.Params.Meta.Subscription) != id {
			t.Errorf("%s: heard %+v", id, h)
		}
		mux.Tool("new", says(""))
		if h := hear(t, p); h.Method != mcp.NotificationToolsListChanged || string(h.Params.Meta.Subscription) != id {
			t.Errorf("%s: heard %+v", id, h)
		}
	}
}

// CAN-02, SUB-07: a subscription that its client has cancelled says no more; one that
// was not goes on.
func TestCancelledSubscription(t *testing.T) {
	mux := everything(quiet())
	p := newPeer(t, mux, eras[0])
	for _, id := range []string{"1", "2"} {
		p.send(eras[0].request(id, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
		hear(t, p)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	p.send(eras[0].request("3", "tools/call", `"name":"hello"`))
	p.read()
	mux.Tool("new", says(""))
	if h := hear(t, p); string(h.Params.Meta.Subscription) != "2" {
		t.Errorf("heard %+v", h)
	}
	p.send(eras[0].request("4", "tools/call", `"name":"hello"`))
	if r := p.read(); r.ID != mcp.IntID(4) {
		t.Errorf("then came %+v", r)
	}
}

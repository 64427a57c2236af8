// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// A session that has many subscriptions costs no more by each further one: those that it
// has are not read again, neither when it subscribes nor when it unsubscribes.
func TestSecondLookReadsOfSubscriptions(t *testing.T) {
	var reads atomic.Int64
	note := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		reads.Add(1)
		return &mcp.ReadResourceResult{}, nil
	})
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("notes://{id}", note)
	p := newPeer(t, mux, eras[1])
	const n = 50
	send := func(what, method string, uri func(i int) string, most int64) {
		t.Helper()
		reads.Store(0)
		for i := range n {
			p.send(eras[1].request(fmt.Sprint(i), method, fmt.Sprintf(`"uri":%q`, uri(i))))
			if got := p.read(); got.Error != nil {
				t.Fatal(got.Error)
			}
		}
		if got := reads.Load(); got > most {
			t.Errorf("%s: %d requests read %d resources, want %d", what, n, got, most)
		}
	}
	each := func(i int) string { return fmt.Sprint("notes://", i) }
	send("new ones", "resources/subscribe", each, 2*n)
	send("the same", "resources/subscribe", each, n)
	send("none of them", "resources/unsubscribe", func(int) string { return "notes://x" }, 0)
	mux.ResourceUpdated("notes://7")
	if got := p.receive(); !strings.Contains(got, "notes://7") {
		t.Errorf("got %s", got)
	}
	send("all of them", "resources/unsubscribe", each, 0)
	mux.ResourceUpdated("notes://7")
	p.send(eras[1].request("1", "ping", ""))
	if got := p.receive(); strings.Contains(got, "notes://7") {
		t.Errorf("got %s", got)
	}
}

// A resource that hangs costs the client that subscribes to it one request, which it can
// cancel.
func TestSecondLookSubscribeCancelled(t *testing.T) {
	var reads atomic.Int64
	hangs, left := make(chan struct{}), make(chan struct{})
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("notes://ok", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.ReadResourceResult{}, nil
	}))
	mux.Resource("notes://hangs", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		switch reads.Add(1) {
		case 2: // when the session is to be told of it
			close(hangs)
			<-ctx.Done()
			close(left)
		case 3: // by the next request, if that is served before the first has ended
			return nil, mcp.NewResourceNotFoundError("notes://hangs")
		}
		return &mcp.ReadResourceResult{}, nil
	}))
	p := newPeer(t, mux, eras[1])
	p.send(eras[1].request("1", "resources/subscribe", `"uri":"notes://hangs"`))
	<-hangs
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-left
	p.send(eras[1].request("2", "resources/subscribe", `"uri":"notes://ok"`))
	if got := p.read(); got.Error != nil {
		t.Error(got.Error)
	}
	mux.ResourceUpdated("notes://hangs")
	mux.ResourceUpdated("notes://ok")
	if got := p.receive(); !strings.Contains(got, "notes://ok") {
		t.Errorf("got %s", got)
	}
}

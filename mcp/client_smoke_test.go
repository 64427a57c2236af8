// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
)

func TestClientSmoke(t *testing.T) {
	type name struct {
		Name string `json:"name"`
	}
	mux := mcp.NewMux("srv", "v1", nil)
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 3, "one")
		a, err := mcp.Elicit[name](ctx, "a", "A?")
		if err != nil {
			return "", err
		}
		mcp.Progress(ctx, 2, 3, "two")
		b, err := mcp.Elicit[name](ctx, "b", "B?")
		if err != nil {
			return "", err
		}
		return a.Name + b.Name, nil
	}, nil))
	answer := func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: []byte(`{"name":"` + p.Message[:1] + `"}`)}, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, v := range []string{"", "2025-11-25", "2024-11-05"} {
		conn, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Elicit: answer, Version: v}).Connect(ctx, mcp.InProcess(mux))
		if err != nil {
			t.Fatal(v, err)
		}
		var n int
		out, err := mcp.Call[string](mcp.WithProgress(ctx, func(p *mcp.ProgressParams) { n++ }), conn, "ask", struct{}{})
		t.Log(conn.Version(), conn.ServerInfo(), out, err, n)
		changes := make(chan mcp.Change, 10)
		sub, err := conn.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(c mcp.Change) { changes <- c })
		if err != nil {
			t.Fatal(err)
		}
		mux.Tool("x"+v, mcp.HandlerFunc(nil))
		t.Log(<-changes, sub.Accepted)
		sub.Close()
		<-sub.Done()
		t.Log(sub.Err())
		for tool, err := range conn.Tools(ctx, nil) {
			t.Log(tool, err)
		}
		conn.Close()
		t.Log(conn.Wait())
	}
	for _, front := range []string{"2026-07-28", "2025-11-25"} {
		for _, back := range []string{"2026-07-28", "2025-11-25"} {
			backend, err := mcp.NewClient("gw", "v1", &mcp.ClientOptions{Version: back, Forward: true}).Connect(ctx, mcp.InProcess(mux))
			if err != nil {
				t.Fatal(err)
			}
			gw := mcp.NewMux("gw", "v1", nil)
			gw.Mount("b_", backend)
			conn, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Elicit: answer, Version: front}).Connect(ctx, mcp.InProcess(gw))
			if err != nil {
				t.Fatal(err)
			}
			var n int
			out, err := mcp.Call[string](mcp.WithProgress(ctx, func(p *mcp.ProgressParams) { n++ }), conn, "b_ask", struct{}{})
			t.Log(front, back, out, err, n)
			conn.Close()
			backend.Close()
		}
	}
}

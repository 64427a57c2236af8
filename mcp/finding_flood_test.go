// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// A client that sends without reading is not read any more when as many messages as are
// allowed wait to be answered, refusals included. When it reads, it gets every answer.
func TestFindingW15FloodWithoutReading(t *testing.T) {
	const inFlight = 5
	for name, flood := range map[string]func(id int) string{
		"unknown method": func(id int) string { return eras[0].request(fmt.Sprint(id), "tools/nosuch", "") },
		"malformed":      func(int) string { return `{"jsonrpc":"2.0"` },
		"no version":     func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id) },
		"same id":        func(int) string { return eras[0].request("1", "tools/call", `"name":"wait"`) },
		"too many":       func(id int) string { return eras[0].request(fmt.Sprint(id), "tools/call", `"name":"wait"`) },
		"batches":        func(int) string { return `[]` },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				mux := mcp.NewMux("m", "v1", quiet())
				mux.Tool("wait", mcp.ToolFunc(func(context.Context, none) (string, error) { <-release; return "waited", nil }, nil))
				client, server := transport.Pipe()
				served := make(chan error, 1)
				go func() {
					served <- mcpstdio.ServeStream(t.Context(), mux, server, &mcpstdio.StreamOptions{MaxInFlight: inFlight, Logger: quiet().Logger})
				}()
				ctx, stop := context.WithCancel(t.Context())
				var sent atomic.Int32
				stopped := make(chan struct{})
				go func() {
					defer close(stopped)
					for client.Write(ctx, []byte(flood(int(sent.Load())))) == nil && sent.Load() < 10_000 {
						sent.Add(1)
					}
				}()
				<-time.After(time.Minute)
				const room = 64 // in a pipe, each way
				if n := sent.Load(); n > 2*room+4*inFlight {
					t.Errorf("%d messages were read, with room for %d answers and %d requests in flight", n, room, inFlight)
				}
				stop()
				<-stopped
				close(release)
				for range sent.Load() {
					if _, err := client.Read(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if err := client.Write(t.Context(), []byte(eras[0].request("99", "tools/call", `"name":"wait"`))); err != nil {
					t.Fatal(err)
				}
				if answer, err := client.Read(t.Context()); err != nil || !strings.Contains(string(answer), "waited") {
					t.Errorf("got %s, %v", answer, err)
				}
				client.Close()
				<-served
			})
		})
	}
}

// Notifications that a handler takes long for count as well. A cancellation still reaches
// the requests in flight.
func TestFindingW15FloodOfNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var began, cancelled atomic.Int32
		h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			began.Add(1)
			if req.IsNotification() {
				<-release
			} else {
				<-ctx.Done()
				cancelled.Add(1)
			}
			return nil, ctx.Err()
		})
		client, server := transport.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- mcpstdio.ServeStream(t.Context(), h, server, &mcpstdio.StreamOptions{MaxInFlight: 3, Logger: quiet().Logger})
		}()
		for id := range 3 {
			client.Write(t.Context(), []byte(eras[0].request(fmt.Sprint(id), "vendor/wait", "")))
		}
		client.Write(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
		<-time.After(time.Second)
		if n := cancelled.Load(); n != 1 {
			t.Errorf("%d requests were cancelled, want 1", n)
		}
		go func() {
			for range 50 {
				client.Write(t.Context(), []byte(`{"jsonrpc":"2.0","method":"vendor/note","params":{`+eras[0].meta+`}}`))
			}
		}()
		<-time.After(time.Minute)
		if n := began.Load(); n > 3+9 {
			t.Errorf("%d messages are served at once", n)
		}
		close(release)
		<-time.After(time.Minute)
		if n := began.Load(); n != 53 {
			t.Errorf("%d messages were served, want 53", n)
		}
		client.Close()
		<-served
	})
}

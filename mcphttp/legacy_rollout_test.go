// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// A balancer sends each request to the next replica in turn, of those that are in rotation.
type balancer struct {
	mu       sync.Mutex
	replicas []*replica
	next     int
}

// RoundTrip implements [http.RoundTripper].
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	if len(b.replicas) == 0 {
		b.mu.Unlock()
		return nil, errors.New("no replica")
	}
	b.next++
	to := b.replicas[b.next%len(b.replicas)]
	b.mu.Unlock()
	return to.client.Transport.RoundTrip(r)
}

func (b *balancer) set(n int, r *replica) (before *replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n == len(b.replicas) {
		b.replicas = append(b.replicas, r)
		return nil
	}
	before = b.replicas[n]
	b.replicas[n] = r
	return before
}

// A rolling deployment: each replica leaves the rotation, is drained and replaced, while
// clients of all older revisions call, are asked and listen. No call fails, none is executed
// twice, and no change is missed.
func TestRollingDeployment(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		bubble(t, version, func(t *testing.T) { testRollingDeployment(t, version) })
	}
}

func testRollingDeployment(t *testing.T, version string) {
	t.Helper()
	f, b := newFleet(t, nil), new(balancer)
	var executed atomic.Int32
	muxes := map[*replica]*mcp.Mux{}
	start := func() *replica {
		mux := tools()
		mux.Tool("work", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			executed.Add(1)
			mcp.Progress(ctx, 1, 2, "")
			pass(3 * time.Second)
			return "done", nil
		}, nil))
		r := f.add(mux, nil)
		muxes[r] = mux
		return r
	}
	for n := range 3 {
		b.set(n, start())
	}
	changes := make(chan struct{}, 1000)
	client := mcp.NewClient("test", "v1", &mcp.ClientOptions{
		Version: version,
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			pass(2 * time.Second)
			return &mcp.ElicitResult{Action: "accept", Content: json.RawMessage(`{"name":"Ada"}`)}, nil
		},
	})
	conn, err := client.Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", &mcphttp.TransportOptions{Client: &http.Client{Transport: b}, Logger: quiet}))
	if err != nil {
		t.Fatal(err)
	}
	sub, err := conn.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) { changes <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for _, tool := range []string{"work", "work", "ask", "ask", "hello"} {
		clients.Go(func() {
			for ctx.Err() == nil {
				res, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
				if err != nil {
					t.Errorf("%s: %v", tool, err)
				} else if res.IsError {
					t.Errorf("%s: %v", tool, res.Content)
				}
				if tool == "work" {
					calls.Add(1)
				}
				pass(700 * time.Millisecond)
			}
		})
	}
	for n := range 3 {
		pass(10 * time.Second)
		before := b.set(n, start())
		if err := before.handler.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		before.kill()
		pass(10 * time.Second) // the client reconnects
		for len(changes) > 0 {
			<-changes
		}
		for _, r := range slices.Clone(b.replicas) { // the change is made at all replicas
			muxes[r].Tool("new "+time.Now().String(), uncalled)
		}
		within(t, time.Minute, "the change", changes)
	}
	stop()
	clients.Wait()
	if executed.Load() != calls.Load() {
		t.Errorf("%d calls were executed %d times", calls.Load(), executed.Load())
	}
	sub.Close()
	_ = conn.Close()
	f.close()
}

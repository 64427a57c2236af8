// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// The second farm finishes what the first one has begun, and renders no shot twice.
func TestAnotherFarmContinues(t *testing.T) {
	var mu sync.Mutex
	var rendered []string
	reached := make(chan struct{}) // the first farm is in the middle
	f := &farm{render: func(ctx context.Context, shot string) error {
		if shot == "storm" && reached != nil {
			close(reached)
			reached = nil
			<-ctx.Done()
			return context.Cause(ctx)
		}
		mu.Lock()
		defer mu.Unlock()
		rendered = append(rendered, shot)
		return nil
	}}
	middle := reached
	shared := store.NewMemory(nil)
	quick := &tasks.Options{PollInterval: 20 * time.Millisecond, Lease: 500 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	first, firstManager := f.newServer(shared, quick)
	second, secondManager := f.newServer(shared, quick)
	defer func() { _ = secondManager.Shutdown(context.Background()) }()

	client := mcp.NewClient("test", "v1.0.0", &mcp.ClientOptions{
		Extensions: []*mcp.ClientExtension{tasks.Client()},
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: json.RawMessage(`{"codec":"av1"}`)}, nil
		},
	})
	task := start(t, client, first)
	waiting := make(chan string, 1)
	go func() { waiting <- wait(t, client, second, task) }() // also answers the question
	<-middle
	if err := firstManager.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-waiting; got != "Sturm is ready" {
		t.Error(got)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"title", "storm", "chase", "kiss", "credits"}; !slices.Equal(rendered, want) {
		t.Errorf("rendered %v, want %v", rendered, want)
	}
}

// A shot that is rendered when the farm is shut down does not hold it up.
func TestRenderEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := renderSlowly(ctx, "storm"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// start starts a task and returns its ID.
func start(t *testing.T, client *mcp.Client, server *mcp.Mux) string {
	t.Helper()
	conn := connect(t, client, server)
	task, _, err := tasks.Start(t.Context(), conn, &mcp.CallToolParams{Name: "render", Arguments: json.RawMessage(`{"title":"Sturm"}`)})
	if err != nil || task == nil {
		t.Fatal(task, err)
	}
	return task.ID
}

// wait waits for a task and returns the text of its result.
func wait(t *testing.T, client *mcp.Client, server *mcp.Mux, task string) string {
	res, err := tasks.Attach(connect(t, client, server), task).Wait(t.Context())
	if err != nil {
		t.Error(err)
		return ""
	}
	return res.Content[0].(*mcp.TextContent).Text
}

func connect(t *testing.T, client *mcp.Client, server *mcp.Mux) *mcp.Conn {
	conn, err := client.Connect(t.Context(), mcp.InProcess(server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

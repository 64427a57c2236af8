// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
)

const (
	callTimeout = 10 * time.Second // of one attempt
	patience    = time.Minute      // of all attempts; then the step counts as lost
)

// A row is the client's view of one of its activities.
type row struct {
	Name    string
	Done    int // completed, with the right result
	Again   int // attempts that were interrupted and repeated
	Lost    int // wrong, or not completed after all attempts
	Slowest time.Duration
	Last    string
}

// A client uses a session, answers questions, subscribes and runs tasks, all concurrently.
type client struct {
	url string

	mu   sync.Mutex
	rows [4]row
}

func newClient(url string) *client {
	return &client{url: url, rows: [4]row{{Name: "session"}, {Name: "question"}, {Name: "subscription"}, {Name: "task"}}}
}

func (c *client) status() []row {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.rows[:])
}

// runClient runs the client process of the cluster, which serves its status.
func runClient(ctx context.Context, r *role) error {
	c := newClient(r.URL)
	go c.run(ctx)
	return serveHTTP(ctx, r.Addr, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(c.status())
	}), func(context.Context) error { return nil })
}

func (c *client) run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { c.useSession(ctx) })
	all.Go(func() { c.useStateless(ctx) })
	all.Wait()
}

func (c *client) newMCP(version string) *mcp.Client {
	return mcp.NewClient("cluster", "v1.0.0", &mcp.ClientOptions{
		Version: version, CallTimeout: callTimeout, Extensions: []*mcp.ClientExtension{tasks.Client()}, Logger: slog.New(slog.DiscardHandler),
		Elicit: func(ctx context.Context, _ *mcp.Conn, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			sleep(ctx, 300*time.Millisecond) // the user thinks
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: json.RawMessage(`{"drink":"tea"}`)}, nil
		},
	})
}

// errWrong is the error for a wrong result.
var errWrong = errors.New("wrong result")

func check(err error, got, want string) error {
	if err == nil && got != want {
		err = fmt.Errorf("%w %q, want %q", errWrong, got, want)
	}
	return err
}

// repeat performs step repeatedly, with pauses, until ctx is done.
func (c *client) repeat(ctx context.Context, r *row, pause time.Duration, step func(context.Context) (string, error)) {
	for ctx.Err() == nil {
		c.do(ctx, r, step)
		sleep(ctx, pause)
	}
}

// do performs step. If it fails because a replica was killed, do retries it.
func (c *client) do(ctx context.Context, r *row, step func(context.Context) (string, error)) {
	begun := time.Now()
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		last, err := step(bounded)
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		r.Slowest = max(r.Slowest, time.Since(begun))
		switch {
		case err == nil:
			r.Done++
			r.Last = last
		case errors.Is(err, errWrong) || bounded.Err() != nil:
			r.Lost++
			r.Last = err.Error()
		default:
			r.Again++
			r.Last = err.Error()
		}
		c.mu.Unlock()
		if err == nil || errors.Is(err, errWrong) || bounded.Err() != nil {
			return
		}
		sleep(bounded, 100*time.Millisecond)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// A server uses one store, which may be nil, for all shared state.
type server struct {
	counter *counter // nil if there is no store
	http    *httptest.Server
	endings []func()
}

type answer struct {
	Text string `json:"text"`
}

func newServer(shared store.Store) *server {
	s := new(server)
	muxOpts, opts := &mcp.MuxOptions{}, &mcphttp.Options{}
	if shared != nil {
		s.counter = &counter{Store: shared}
		muxOpts.StateStore, muxOpts.Bus = s.counter, s.counter
		opts.Sessions.Shared = &mcphttp.SharedSessions{Values: s.counter, URL: "http://only.one/", Keys: [][]byte{make([]byte, 32)}}
	}
	mux := mcp.NewMux("stores", "v1", muxOpts)
	mux.Tool("plain", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "done", nil }, nil))
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		a, err := mcp.Elicit[answer](ctx, "key", "Text?")
		return a.Text, err
	}, nil))
	mux.Tool("work", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 5 {
			mcp.Progress(ctx, float64(i), 5, "")
		}
		return "done", nil
	}, nil))
	endpoint := mcphttp.NewHandler(mux, opts)
	s.http = httptest.NewServer(endpoint)
	s.closeLater(s.http.Close)
	s.closeLater(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = endpoint.Shutdown(ctx) // the process exits anyway
	})
	return s
}

func (s *server) client(version string) *mcp.Client {
	return mcp.NewClient("stores", "v1", &mcp.ClientOptions{
		Version: version,
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: []byte(`{"text":"done"}`)}, nil
		},
	})
}

func (s *server) closeLater(f func()) { s.endings = append(s.endings, f) }

func (s *server) close() {
	for _, end := range slices.Backward(s.endings) {
		end()
	}
}

// steps returns the number of store operations so far.
func (s *server) steps() int {
	if s.counter == nil {
		return 0
	}
	return int(s.counter.steps.Load())
}

// counter is a store that counts the operations caused by clients, but not those of the
// process itself.
type counter struct {
	store.Store

	steps atomic.Int64
}

func (c *counter) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	c.steps.Add(1)
	return c.Store.Get(ctx, key)
}

func (c *counter) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	c.steps.Add(1)
	return c.Store.Put(ctx, key, value, version, ttl)
}

func (c *counter) Take(ctx context.Context, key string) ([]byte, error) {
	c.steps.Add(1)
	return c.Store.Take(ctx, key)
}

func (c *counter) Publish(ctx context.Context, topic string, message []byte) error {
	if topic != "psi/alive" {
		c.steps.Add(1)
	}
	return c.Store.Publish(ctx, topic, message)
}

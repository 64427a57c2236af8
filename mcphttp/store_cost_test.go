// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// A stepCounter counts the operations of a store.
type stepCounter struct {
	store.Store

	steps atomic.Int32
	puts  atomic.Int32
}

func (c *stepCounter) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	c.steps.Add(1)
	return c.Store.Get(ctx, key)
}

func (c *stepCounter) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	c.steps.Add(1)
	c.puts.Add(1)
	return c.Store.Put(ctx, key, value, version, ttl)
}

func (c *stepCounter) Take(ctx context.Context, key string) ([]byte, error) {
	c.steps.Add(1)
	return c.Store.Take(ctx, key)
}

func (c *stepCounter) Publish(ctx context.Context, topic string, message []byte) error {
	c.steps.Add(1)
	return c.Store.Publish(ctx, topic, message)
}

func (c *stepCounter) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	c.steps.Add(1)
	return c.Store.Subscribe(ctx, topic)
}

// A modern call that asks no questions uses no store, even if one is shared.
func TestModernCallsTouchNoStore(t *testing.T) {
	for version, touches := range map[string]bool{mcp.LatestVersion: false, mcp.LegacyVersions()[0]: true} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := &stepCounter{Store: store.NewMemory(nil)}
				mux := mcp.NewMux("test", "v1", &mcp.MuxOptions{StateStore: shared, Bus: shared, Logger: slog.New(slog.DiscardHandler)})
				mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
				s := newFleet(t, shared).add(mux, nil)
				c, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: version}).Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				for range 10 {
					if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"}); err != nil {
						t.Fatal(err)
					}
				}
				if n := shared.steps.Load(); n > 0 != touches {
					t.Errorf("%d steps of the store", n)
				}
			})
		})
	}
}

// Sessions are extended in the store together, twice per SessionOptions.Idle, whenever they were
// opened.
func TestSessionsAreExtendedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const others = 20
		shared := &stepCounter{Store: store.NewMemory(nil)}
		s := newFleet(t, shared).add(tools(), &mcphttp.Options{Sessions: mcphttp.SessionOptions{Idle: 10 * time.Minute}})
		read(t, s.do(s.request(t.Context(), http.MethodGet, "", s.open("2025-11-25"))))
		for range others {
			s.open("2025-11-25")
			pass(time.Second)
		}
		opened := shared.puts.Load()
		pass(9 * time.Minute)
		if n := shared.puts.Load() - opened; n != 1+others {
			t.Errorf("%d records were written in the first half of SessionOptions.Idle, want one for each session", n)
		}
		pass(5 * time.Minute) // the other sessions are idle meanwhile
		if n := shared.puts.Load() - opened; n != 1+others+1 {
			t.Errorf("%d records were written in all of SessionOptions.Idle, want one more", n)
		}
		s.close()
	})
}

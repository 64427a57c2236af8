// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/middleware"
)

// newReplica returns one of several servers that share a store. url is where the others
// reach its PeerHandler; keys are the same everywhere.
func newReplica(shared store.Store, url string, keys [][]byte) *mcphttp.Handler {
	mux := mcp.NewMux("shop", "v1.0.0", &mcp.MuxOptions{
		StateKeys:  keys,   // any replica continues a call that another one began
		StateStore: shared, // an answer counts once
		Bus:        shared, // changes reach the subscribers of all replicas
	})
	mux.Use(middleware.RateLimit(middleware.ByPrincipal, middleware.NewSharedBucket(shared, 100, time.Minute, nil)))
	mux.Tool("order", mcp.ToolFunc(orderItem, nil))
	return mcphttp.NewHandler(mux, &mcphttp.Options{Sessions: mcphttp.SessionOptions{
		Shared: &mcphttp.SharedSessions{Values: shared, URL: url, Keys: keys},
	}})
}

type orderIn struct {
	Item string `json:"item"`
}

func orderItem(ctx context.Context, in orderIn) (string, error) {
	sure, err := mcp.Elicit[struct {
		Sure bool `json:"sure"`
	}](ctx, "sure", "Order "+in.Item+"?")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is ordered: %v", in.Item, sure.Sure), nil
}

// TestReplicas asks a user, in every era, through two replicas that take turns.
func TestReplicas(t *testing.T) {
	shared, keys := store.NewMemory(nil), [][]byte{make([]byte, 32)}
	var replicas [2]*mcphttp.Handler
	for i := range replicas {
		mcptest.ServeFunc(t, func(url string) http.Handler {
			replicas[i] = newReplica(shared, url+"/", keys)
			return replicas[i].PeerHandler()
		})
	}
	var turn atomic.Int64
	url := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		replicas[turn.Add(1)%2].ServeHTTP(w, r)
	}))
	for _, version := range []string{mcp.LatestVersion, "2025-11-25"} {
		conn := mcptest.Dial(t, mcphttp.NewTransport(url, nil), &mcp.ClientOptions{
			Version: version,
			Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return mcptest.Accept(map[string]bool{"sure": true}), nil
			},
		})
		got, err := mcp.Call[string](t.Context(), conn, "order", orderIn{"tea"})
		if err != nil || got != "tea is ordered: true" {
			t.Errorf("%s: got %q, %v", version, got, err)
		}
	}
}

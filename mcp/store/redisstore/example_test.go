// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore_test

import (
	"context"
	"log"
	"net/http"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store/redisstore"
	"github.com/go-psi/psi/mcphttp"
)

// Replicas that share a store pass on each other's sessions, so no load balancer has to know
// which replica has which session.
func ExampleOpen() { //nolint:testableexamples // it needs a server
	shared, err := openRedis(context.Background(), "redis:6379")
	if err != nil {
		log.Print(err)
		return
	}
	defer shared.Close()

	mux := mcp.NewMux("server", "v1.0.0", &mcp.MuxOptions{StateStore: shared})
	endpoint := mcphttp.NewHandler(mux, &mcphttp.Options{Sessions: mcphttp.SessionOptions{
		Shared: &mcphttp.SharedSessions{Values: shared, URL: "http://10.0.0.7:8080/peers", Keys: [][]byte{[]byte("the same secret on all replicas")}},
	}})
	http.Handle("/mcp", endpoint)
	http.Handle("/peers", endpoint.PeerHandler()) // then http.ListenAndServe
}

// openRedis takes the address of a server, or of some nodes of a cluster.
func openRedis(ctx context.Context, addresses ...string) (*redisstore.Store, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addresses})
	if err != nil {
		return nil, err
	}
	return redisstore.Open(ctx, client, &redisstore.Options{Namespace: "shop"})
}

func TestOpenRedis(t *testing.T) {
	s := start(t)
	shared, err := openRedis(t.Context(), s.address())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Put(t.Context(), "key", nil, 0, time.Minute); err != nil {
		t.Error(err)
	}
}

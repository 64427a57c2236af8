// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/redis/rueidis"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store/redisstore"
	"github.com/go-psi/psi/mcphttp"
)

// Replicas that share a store pass on each other's sessions, so no load balancer has to know
// which replica has which session.
func ExampleOpen() { //nolint:testableexamples // it needs a server
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	shared, err := redisstore.Open(context.Background(), client, nil)
	if err != nil {
		fmt.Println(err)
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

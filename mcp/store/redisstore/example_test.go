// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore_test

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store/redisstore"
	"github.com/go-psi/psi/mcphttp"
)

// Replicas that share a store serve each other's sessions, so no load balancer has to know
// which replica holds which session.
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
	endpoint := mcphttp.NewHandler(mux, &mcphttp.Options{Store: shared})
	_ = endpoint // serve it with net/http
}

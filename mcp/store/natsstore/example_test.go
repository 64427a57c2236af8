// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store/natsstore"
	"github.com/go-psi/psi/mcphttp"
)

// Replicas that share a store pass on each other's sessions, so no load balancer has to know
// which replica has which session.
func ExampleOpen() {
	shared, err := openNATS(context.Background(), embedded(), 1)
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

	version, err := shared.Put(context.Background(), "key", []byte("value"), 0, time.Minute)
	fmt.Println(version > 0, err)
	// Output: true <nil>
}

// openNATS takes the URLs of the servers, separated by commas. In a cluster, replicas is 3.
func openNATS(ctx context.Context, urls string, replicas int) (*natsstore.Store, error) {
	nc, err := nats.Connect(urls, nats.MaxReconnects(-1)) // rather than give up after two minutes
	if err != nil {
		return nil, err
	}
	return natsstore.Open(ctx, nc, &natsstore.Options{Namespace: "shop", Replicas: replicas})
}

// If a server cannot create its stream, an operator can create it.
func ExampleStreamConfig() {
	s, err := natsstore.StreamConfig(&natsstore.Options{Namespace: "shop", Replicas: 3})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Name, s.Subjects, s.Replicas)
	// Output: KV_shop [$KV.shop.>] 3
}

// embedded starts a NATS server in this process. In production, it is a separate process.
func embedded() (url string) {
	dir, err := os.MkdirTemp("", "natsstore")
	if err != nil {
		log.Fatal(err)
	}
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true})
	if err != nil {
		log.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		log.Fatal("the NATS server does not start")
	}
	return srv.ClientURL()
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// roleEnv is the environment variable that makes this program a process of the cluster.
const roleEnv = "PSI_CLUSTER_ROLE"

// A role describes a process of the cluster.
type role struct {
	Kind         string // "node", "replica" or "client"
	Number       int
	Addr         string   // where it serves /status and, if it is a replica, /mcp
	NATS, Routes []string // addresses of all nodes: for clients, and for other nodes
	Dir          string   // of a node
	Key          []byte   // of the replicas
	URL          string   // used by the client
}

// runRole runs this process if it is a member of a cluster, and then does not return. The
// process exits when its standard input is closed, so it cannot outlive the process that
// started it.
func runRole() {
	text := os.Getenv(roleEnv)
	if text == "" {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		err = map[string]func(context.Context, *role) error{"node": runNode, "replica": runReplica, "client": runClient}[r.Kind](ctx, &r)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %s %d: %v\n", r.Kind, r.Number, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveHTTP serves at an address until ctx is done. It then calls stop, which ends
// long-lived requests, and waits for requests in flight.
func serveHTTP(ctx context.Context, addr string, h http.Handler, stop func(context.Context) error) error {
	srv := &http.Server{Addr: addr, Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- srv.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := stop(ctx); err != nil {
		return err
	}
	return srv.Shutdown(ctx)
}

// freeAddrs returns addresses that were free a moment ago.
func freeAddrs(ctx context.Context, n int) (addrs []string, err error) {
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

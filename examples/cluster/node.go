// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/nats-io/nats-server/v2/server"
)

// nodeStatus is the status reported by a node.
type nodeStatus struct {
	Leads   []string // the streams that it leads
	Clients int
}

// runNode runs one of the three NATS servers until ctx is done.
func runNode(ctx context.Context, r *role) error {
	var routes []*url.URL
	for _, addr := range r.Routes {
		routes = append(routes, &url.URL{Scheme: "nats", Host: addr})
	}
	client, cluster := mustAddr(r.NATS[r.Number]), mustAddr(r.Routes[r.Number])
	srv, err := server.NewServer(&server.Options{
		ServerName: fmt.Sprint("node-", r.Number), Host: client.IP.String(), Port: client.Port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: r.Dir, Routes: routes,
		Cluster: server.ClusterOpts{Name: "psi", Host: cluster.IP.String(), Port: cluster.Port},
	})
	if err != nil {
		return err
	}
	srv.Start()
	status := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s := nodeStatus{Clients: srv.NumClients()}
		if srv.JetStreamIsStreamLeader("$G", "KV_psi") {
			s.Leads = append(s.Leads, "values")
		}
		_ = json.NewEncoder(w).Encode(s) //nolint:errchkjson // it has nothing that cannot be encoded
	})
	err = serveHTTP(ctx, r.Addr, status, func(context.Context) error { return nil })
	srv.Shutdown()
	srv.WaitForShutdown()
	return err
}

// mustAddr parses an address created by this program.
func mustAddr(addr string) *net.TCPAddr {
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		panic(err)
	}
	return a
}

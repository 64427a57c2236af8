// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/natsstore"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
)

// replicaStatus is the status reported by a replica.
type replicaStatus struct {
	Sessions, Calls, Streams int
}

// runReplica runs one of the MCP servers until ctx is done. Everything that the replicas
// share is set up here: a store, and the keys that seal the state of questions and what they
// pass on to each other.
func runReplica(ctx context.Context, r *role) error {
	shared, err := openStore(ctx, r.NATS)
	if err != nil {
		return err
	}
	mux := mcp.NewMux("cluster", "v1.0.0", &mcp.MuxOptions{StateKeys: [][]byte{r.Key}, Bus: shared})
	s := &service{shared: shared, mux: mux}
	manager := tasks.New("cluster", &tasks.Options{Store: shared, Lease: 3 * time.Second, PollInterval: 250 * time.Millisecond})
	manager.Register(mux)
	mux.Use(s.count)
	mux.Tool("whoami", mcp.ToolFunc(whoami, nil))
	mux.Tool("order", mcp.ToolFunc(order, nil))
	mux.Tool("publish", mcp.ToolFunc(s.publish, nil))
	mux.Resource(newsURI, mcp.ResourceFunc(s.readNews, &mcp.Resource{Name: "news"}))
	mux.With(manager.Background(nil)).Tool("render", mcp.ToolFunc(render, nil))

	endpoint := mcphttp.NewHandler(mux, &mcphttp.Options{Heartbeat: 2 * time.Second, Sessions: mcphttp.SessionOptions{
		Shared: &mcphttp.SharedSessions{Values: shared, URL: "http://" + r.Addr + "/peers", Keys: [][]byte{r.Key}},
	}})
	routes := http.NewServeMux()
	routes.Handle("/mcp", endpoint)
	routes.Handle("/peers", endpoint.PeerHandler()) // the balancer does not forward this path
	routes.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) {
		st := replicaStatus{Calls: int(s.calls.Load()), Streams: int(s.streams.Load())}
		for range endpoint.Sessions() {
			st.Sessions++
		}
		_ = json.NewEncoder(w).Encode(st)
	})
	return serveHTTP(ctx, r.Addr, routes, func(ctx context.Context) error {
		return errors.Join(manager.Shutdown(ctx), endpoint.Shutdown(ctx))
	})
}

// openStore waits for the NATS cluster, which has no leader at first.
func openStore(ctx context.Context, nodes []string) (*natsstore.Store, error) {
	nc, err := nats.Connect("nats://"+strings.Join(nodes, ",nats://"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.ReconnectWait(100*time.Millisecond), nats.Timeout(time.Second), nats.PingInterval(time.Second))
	if err != nil {
		return nil, err
	}
	for {
		s, err := natsstore.Open(ctx, nc, &natsstore.Options{Replicas: 3})
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// A service implements the tools, and holds what they share.
type service struct {
	shared         store.Store
	mux            *mcp.Mux
	calls, streams atomic.Int64
}

func (s *service) count(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodListen {
			s.streams.Add(1)
			defer s.streams.Add(-1)
		} else {
			s.calls.Add(1)
		}
		return next.ServeMCP(ctx, req)
	})
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/redis/rueidis"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/natsstore"
	"github.com/go-psi/psi/mcp/store/redisstore"
)

// runNode runs a NATS server until ctx is done.
func runNode(ctx context.Context, r *role) error {
	client, err := net.ResolveTCPAddr("tcp", r.Engine[r.Number])
	if err != nil {
		return err
	}
	cluster, err := net.ResolveTCPAddr("tcp", r.Routes[r.Number])
	if err != nil {
		return err
	}
	var routes []*url.URL
	for _, addr := range r.Routes {
		routes = append(routes, &url.URL{Scheme: "nats", Host: addr})
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: fmt.Sprint("node-", r.Number), Host: client.IP.String(), Port: client.Port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: r.Dir, Routes: routes,
		Cluster: server.ClusterOpts{Name: "chaos", Host: cluster.IP.String(), Port: cluster.Port},
	})
	if err != nil {
		return err
	}
	srv.Start()
	<-ctx.Done()
	srv.Shutdown()
	srv.WaitForShutdown()
	return nil
}

// errNoRedis is returned if neither Valkey nor Redis is installed.
var errNoRedis = errors.New("chaos: there is neither valkey-server nor redis-server: install one of them (apt-get install redis-server)")

// redisCommand returns the command of a Redis or Valkey server that syncs every write to
// disk before acknowledging it.
func redisCommand(r *role) (*exec.Cmd, error) {
	_, port, err := net.SplitHostPort(r.Engine[r.Number])
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"valkey-server", "redis-server"} {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.MkdirAll(r.Dir, 0o700); err != nil {
				return nil, err
			}
			return exec.Command(path, "--bind", "127.0.0.1", "--port", port, "--dir", r.Dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always"), nil //nolint:gosec,noctx // it is killed
		}
	}
	return nil, errNoRedis
}

// openStore opens the store of a replica, retrying until the engine is available or ctx is
// done.
func openStore(ctx context.Context, r *role) (s store.Store, err error) {
	for {
		if r.Store == "redis" {
			s, err = openRedis(ctx, r.Engine)
		} else {
			s, err = openNATS(ctx, r.Engine)
		}
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

func openNATS(ctx context.Context, nodes []string) (store.Store, error) {
	nc, err := nats.Connect("nats://"+strings.Join(nodes, ",nats://"), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond), nats.Timeout(time.Second))
	if err != nil {
		return nil, err
	}
	s, err := natsstore.Open(ctx, nc, &natsstore.Options{Replicas: 3})
	if err != nil {
		nc.Close()
		return nil, err
	}
	return s, nil
}

func openRedis(ctx context.Context, nodes []string) (store.Store, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: nodes})
	if err != nil {
		return nil, err
	}
	s, err := redisstore.Open(ctx, client, nil)
	if err != nil {
		client.Close()
		return nil, err
	}
	return s, nil
}

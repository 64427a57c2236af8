// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/redis/rueidis"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/natsstore"
	"github.com/go-psi/psi/mcp/store/redisstore"
)

// An engine is a store to measure.
type engine struct {
	name  string
	store store.Store // nil for no shared store
}

// patience is how long an engine may take to start.
const patience = 20 * time.Second

// openEngines starts the engines that are available.
func openEngines(ctx context.Context) (all []engine, closeAll func(), err error) {
	dir, err := os.MkdirTemp("", "psi-stores")
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	closeAll = func() {
		cancel()
		_ = os.RemoveAll(dir)
	}
	all = []engine{{name: "no store"}, {"memory", store.NewMemory(nil)}}
	onNATS, err := openNATS(ctx, dir)
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	all = append(all, engine{"NATS, one server", onNATS})
	for _, name := range []string{"valkey-server", "redis-server"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		onRedis, err := openRedis(ctx, path, dir)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		return append(all, engine{"Redis", onRedis}), closeAll, nil
	}
	return all, closeAll, nil
}

// openNATS runs a NATS server until ctx is done.
func openNATS(ctx context.Context, dir string) (store.Store, error) {
	srv, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	srv.Start()
	context.AfterFunc(ctx, srv.Shutdown)
	if !srv.ReadyForConnections(patience) {
		return nil, errors.New("the server of NATS does not start")
	}
	nc, err := nats.Connect(srv.ClientURL())
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, nc.Close)
	return natsstore.Open(ctx, nc, nil)
}

// openRedis runs a Redis server until ctx is done.
func openRedis(ctx context.Context, path, dir string) (store.Store, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)                                                                                                                      // of a listener
	_ = l.Close()                                                                                                                                              // for the server
	cmd := exec.CommandContext(ctx, path, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always") //nolint:gosec // it is the server
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait() }() // it is killed when ctx is done
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
		if err == nil {
			context.AfterFunc(ctx, client.Close)
			return redisstore.Open(ctx, client, nil)
		}
		if async.Sleep(bounded, 100*time.Millisecond) != nil {
			return nil, err
		}
	}
}

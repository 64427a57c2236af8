// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware"
)

// upstream is a server behind the gateway.
type upstream struct {
	prefix    string
	transport transport.Transport
}

// connectTimeout is how long a server may take to be reached: it may have to be
// built first.
const connectTimeout = 30 * time.Second

// gateway is a mux and the connections that are mounted on it.
type gateway struct {
	mux    *mcp.Mux
	logger *slog.Logger

	mu    sync.Mutex
	conns []*mcp.Conn
	work  sync.WaitGroup
}

// newClient makes a client that passes questions of the servers on to the callers of the
// gateway. A server that does not answer ends its calls and, if it misses three signs of
// life, its connection. The version is "" unless it is known which one all servers speak.
//
// All callers share one connection to each server. A gateway for several users makes one
// for each of them: see [mcp.ClientOptions].Forward.
func newClient(version string) *mcp.Client {
	return mcp.NewClient("gateway", "v1.0.0", &mcp.ClientOptions{
		Forward: true, Version: version,
		CallTimeout: 5 * time.Minute, KeepAlive: 30 * time.Second,
	})
}

func newGateway(local *mcp.Mux, logger *slog.Logger) *gateway {
	mux := mcp.NewMux("gateway", "v1.0.0", &mcp.MuxOptions{
		Instructions: "Several servers, told apart by the prefixes of their names.", Logger: logger,
	})
	mux.Use(middleware.Logger(logger))
	mux.Mount("local_", local)
	return &gateway{mux: mux, logger: logger}
}

// mountAll connects to the servers at once, and mounts those that can be reached.
func (g *gateway) mountAll(ctx context.Context, client *mcp.Client, servers []upstream) {
	var wg sync.WaitGroup
	for _, server := range servers {
		wg.Go(func() {
			if err := g.mount(ctx, client, server); err != nil {
				g.logger.Error("a server is left out", "prefix", server.prefix, "error", err)
			}
		})
	}
	wg.Wait()
}

// mount connects to a server and mounts the connection for as long as it lives.
func (g *gateway) mount(ctx context.Context, client *mcp.Client, server upstream) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout) // of connecting only
	defer cancel()
	conn, err := client.Connect(ctx, server.transport)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.conns = append(g.conns, conn)
	g.mu.Unlock()
	g.mux.Mount(server.prefix, conn)
	g.logger.Info("mounted", "prefix", server.prefix, "version", conn.Version())
	g.work.Go(func() {
		<-conn.Done()
		g.mux.Unmount(server.prefix)
		g.logger.Info("unmounted", "prefix", server.prefix, "error", conn.Err())
	})
	return nil
}

// close ends the connections, and with them the servers that are commands.
func (g *gateway) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, conn := range g.conns {
		if err := conn.Close(); err != nil {
			g.logger.Error("closing a connection", "error", err)
		}
	}
	g.work.Wait()
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware"
)

// upstream is a server behind the gateway.
type upstream struct {
	prefix    string
	transport transport.Transport
	hasTool   func(name string) bool // whether to offer a tool of the server; nil means all
}

// gateway is a mux with the servers mounted on it.
type gateway struct {
	mux     *mcp.Mux
	logger  *slog.Logger
	mounted []*mcp.Upstream
}

// newClient returns a client that forwards questions of the servers to the callers of the
// gateway. If a server does not answer, its calls fail; if it misses three keep-alive
// pings, its connection is closed. Version is "" unless all servers are known to speak that
// version.
//
// All callers share one connection to each server. A gateway for several users needs one
// for each of them: see [mcp.ClientOptions].Forward.
func newClient(version string) *mcp.Client {
	return mcp.NewClient("gateway", "v1.0.0", &mcp.ClientOptions{
		Forward: true, Version: version,
		CallTimeout: 5 * time.Minute, KeepAlive: 30 * time.Second,
	})
}

// localPrefix is the prefix of the gateway's own server.
const localPrefix = "local_"

func newGateway(local *mcp.Mux, logger *slog.Logger) *gateway {
	mux := mcp.NewMux("gateway", "v1.0.0", &mcp.MuxOptions{
		Instructions: "Several servers, distinguished by the prefixes of their names.", Logger: logger,
	})
	mux.Use(middleware.Logger(logger))
	mux.Mount(localPrefix, local)
	return &gateway{mux: mux, logger: logger}
}

// mount mounts a server that may disconnect and reconnect: the gateway connects as soon as
// the server is reachable, and again whenever the connection is lost.
func (g *gateway) mount(ctx context.Context, client *mcp.Client, server upstream) {
	logger := g.logger.With("prefix", server.prefix)
	up := client.Maintain(ctx, server.transport, &mcp.UpstreamOptions{Logger: logger, MaxDowntime: -1})
	g.mounted = append(g.mounted, up)
	g.mux.Mount(server.prefix, middleware.Visible(func(_ context.Context, kind mcp.Kind, name string) bool {
		return kind != mcp.KindTool || server.hasTool == nil || server.hasTool(name)
	})(up))
}

// close closes the connections, which also stops the servers that are commands.
func (g *gateway) close() {
	for _, up := range g.mounted {
		if err := up.Close(); err != nil {
			g.logger.Error("closing a connection", "error", err)
		}
	}
}

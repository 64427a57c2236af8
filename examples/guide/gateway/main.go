// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command gateway is the gateway of the guide: one endpoint for two servers that are programs.
package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// npx is a server of npm, which is downloaded when it is started for the first time.
func npx(args ...string) transport.Transport {
	return mcpstdio.NewCommand(exec.Command("npx", append([]string{"-y"}, args...)...), nil)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	mux, closeAll := newGateway(context.Background(), map[string]transport.Transport{
		"everything_": npx("@modelcontextprotocol/server-everything"),
		"files_":      npx("@modelcontextprotocol/server-filesystem", "."),
	})
	defer closeAll()

	endpoint := mcphttp.NewHandler(mux, nil)
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: endpoint, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		log.Print(err)
	case <-ctx.Done(): // main goes on when all requests in flight are answered
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = errors.Join(endpoint.Shutdown(ctx), server.Shutdown(ctx))
	}
}

// newGateway mounts servers by prefix. A server that cannot be reached now is mounted as soon
// as it can, and again when it comes back.
func newGateway(ctx context.Context, servers map[string]transport.Transport) (mux *mcp.Mux, closeAll func()) {
	mux = mcp.NewMux("gateway", "v1.0.0", nil)
	mux.Use(middleware.Logger(slog.Default()))
	client := mcp.NewClient("gateway", "v1.0.0", &mcp.ClientOptions{
		Forward:     true, // questions of the servers go to the callers of the gateway
		CallTimeout: 5 * time.Minute,
		KeepAlive:   30 * time.Second, // notices a server that hangs
	})
	var upstreams []*mcp.Upstream
	for prefix, server := range servers {
		up := client.Maintain(ctx, server, &mcp.UpstreamOptions{
			Wait:   15 * time.Second, // for calls while npx starts a server
			Logger: slog.With("prefix", prefix),
		})
		mux.Mount(prefix, up)
		upstreams = append(upstreams, up)
	}
	return mux, func() {
		for _, up := range upstreams {
			_ = up.Close() // which ends the program
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command quickstart is an MCP server that shows a little of everything: typed
// tools, a question to the user, progress, a picture, a prompt that completes,
// files as resources, and a list of tools that changes.
//
//	go run ./examples/quickstart                        # over standard input and output
//	go run ./examples/quickstart -http 127.0.0.1:8080   # at http://127.0.0.1:8080/mcp
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

func main() {
	addr := flag.String("http", "", "serve over HTTP at this address, rather than standard input and output")
	flag.Parse()
	if err := run(*addr); err != nil {
		log.Fatal(err)
	}
}

// run serves until it is interrupted, or the client on standard input has gone.
func run(addr string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	mux := newMux(slog.Default()) // which writes to standard error: standard output belongs to the protocol
	if addr != "" {
		return serveHTTP(ctx, addr, mux)
	}
	if err := mcpstdio.Serve(ctx, mux, nil); ctx.Err() == nil {
		return err
	}
	return nil
}

// serveHTTP serves until ctx is done, and then for as long as the requests take
// that are under way, but no longer than a few seconds.
func serveHTTP(ctx context.Context, addr string, h mcp.Handler) error {
	endpoint := mcphttp.NewHandler(h, nil)
	routes := http.NewServeMux()
	routes.Handle("/mcp", endpoint)
	server := &http.Server{Addr: addr, Handler: routes, ReadHeaderTimeout: 10 * time.Second}

	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	slog.Info("serving", "url", "http://"+addr+"/mcp")
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(endpoint.Shutdown(ctx), server.Shutdown(ctx))
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command server is a server with all features required by the MCP conformance suite. It
// serves clients of every revision in one process and on one endpoint.
//
//	go run ./internal/test/conformance/server -http 127.0.0.1:3001
//
// It prints its URL to standard error once it is listening. The names and texts of its
// tools are defined by the suite; everything else is written as any user of psi would write
// it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-psi/psi/mcphttp"
)

const path = "/mcp"

func main() {
	addr := flag.String("http", "127.0.0.1:3001", "listen on this `address`")
	flag.Parse()
	if err := run(*addr); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// run serves until the process is interrupted or terminated.
func run(addr string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "http://%s%s\n", listener.Addr(), path)
	return serve(ctx, listener)
}

// serve serves until ctx is done, and then shuts down gracefully.
func serve(ctx context.Context, listener net.Listener) error {
	mux, manager := newMux()
	handler := mcphttp.NewHandler(mux, nil)
	routes := http.NewServeMux()
	routes.Handle(path, handler)
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(manager.Shutdown(ending), handler.Shutdown(ending), server.Shutdown(ending))
}

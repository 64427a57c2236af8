// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command notes keeps notes in a SQLite database. A model can add, search and delete
// them with tools; hosts can list, read and watch them as resources.
//
//	go run . -db notes.db                         # on standard input and output
//	go run . -db notes.db -http 127.0.0.1:8080    # at http://127.0.0.1:8080/mcp
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
	path := flag.String("db", "notes.db", "the `file` with the notes; it is created if it does not exist")
	addr := flag.String("http", "", "serve over HTTP at this `address` instead of standard input and output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *path, *addr)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx is done or, on standard input and output, until the client
// disconnects.
func run(ctx context.Context, path, addr string) error {
	notes, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer notes.Close()
	mux := newMux(notes, slog.Default())
	if addr != "" {
		return serveHTTP(ctx, addr, mux)
	}
	if err := mcpstdio.Serve(ctx, mux, nil); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// serveHTTP serves until ctx is done. Requests in flight have five seconds to finish.
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

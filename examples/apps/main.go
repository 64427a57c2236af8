// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command apps is an airline whose tool shows free seats. Any client gets them as text.
// Hosts of MCP Apps show a page on which the user reserves a seat. The command can also
// show the page itself, in a browser.
//
//	go run ./examples/apps -http 127.0.0.1:8080
//	go run ./examples/apps -show 127.0.0.1:8081 -sandbox 127.0.0.1:8082
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-psi/psi/mcphttp"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve at this `address`")
	site := flag.String("show", "", "show the page in a browser, at this `address`")
	sandbox := flag.String("sandbox", "127.0.0.1:8082", "with -show, the `address` of the sandbox")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, *addr, *site, *sandbox)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr, site, sandbox string) error {
	mux, err := newAirline().newServer()
	if err != nil {
		return err
	}
	if site != "" {
		return show(ctx, mux, site, sandbox)
	}
	endpoint := mcphttp.NewHandler(mux, nil)
	server := &http.Server{Addr: addr, Handler: endpoint, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	log.Printf("serving at http://%s", addr)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(endpoint.Shutdown(ctx), server.Shutdown(ctx))
}

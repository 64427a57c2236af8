// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command orders is a REST service on chi, with a database and an OpenAPI document, whose
// operations are tools: the service is called in this process, without a socket, or over
// HTTP if it runs elsewhere.
//
//	ORDERS_KEY=secret go run . -db orders.db -http 127.0.0.1:8080     # REST at /orders, MCP at /mcp
//	ORDERS_KEY=secret go run . -api http://127.0.0.1:8080             # MCP on standard input and output
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/openapi"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

//go:embed openapi.yaml
var document []byte

func main() {
	path := flag.String("db", "orders.db", "the `file` with the orders; it is created if it does not exist")
	addr := flag.String("http", "127.0.0.1:8080", "serve at this `address`")
	url := flag.String("api", "", "serve the tools of the service at this `URL`, on standard input and output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *path, *addr, *url)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, path, addr, url string) error {
	key := os.Getenv("ORDERS_KEY")
	if key == "" {
		return errors.New("set ORDERS_KEY, the key of the service")
	}
	if url != "" {
		mux, err := newMux(key, &openapi.Options{BaseURL: url})
		if err != nil {
			return err
		}
		return mcpstdio.Serve(ctx, mux, nil)
	}
	orders, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer orders.db.Close()
	routes := orders.routes(key)
	mux, err := newMux(key, &openapi.Options{Handler: routes})
	if err != nil {
		return err
	}
	return serve(ctx, addr, routes, mux)
}

// newMux makes a tool of each operation. Requests have the key of the service, which models
// do not see.
func newMux(key string, opts *openapi.Options) (*mcp.Mux, error) {
	opts.Authorize = func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-Api-Key", key)
		return nil
	}
	api, err := openapi.New(document, opts)
	if err != nil {
		return nil, err
	}
	mux := mcp.NewMux("orders", "v1.0.0", nil)
	return mux, api.Register(mux)
}

// serve serves until ctx is done. Requests in flight have five seconds to finish.
func serve(ctx context.Context, addr string, routes http.Handler, h mcp.Handler) error {
	endpoint := mcphttp.NewHandler(h, nil)
	all := http.NewServeMux()
	all.Handle("/mcp", endpoint)
	all.Handle("/", routes)
	server := &http.Server{Addr: addr, Handler: all, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(endpoint.Shutdown(ctx), server.Shutdown(ctx))
}

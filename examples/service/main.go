// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command service is a web service with a REST API and an MCP server side by side, set up
// for production: callers have tokens (JWT) with scopes, Prometheus reads metrics,
// Kubernetes checks its health, and it shuts down without failing requests.
//
//	go run . -resource https://stock.example.com/mcp -issuer https://login.example.com
//
// It listens on two ports: one for clients, and one for the operator, with /metrics,
// /healthz and /readyz. The Dockerfile and kubernetes.yaml deploy it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// config is the configuration set by the operator.
type config struct {
	addr, adminAddr string
	resource        string        // the public URL of the MCP endpoint, and the audience of tokens
	host            string        // of the resource
	issuer          string        // of the tokens
	stateKey        string        // encrypts the state of questions; the same on all replicas
	drain           time.Duration // between failing /readyz and refusing requests
}

func main() {
	var c config
	flag.StringVar(&c.addr, "addr", ":8080", "serve REST and MCP at this `address`")
	flag.StringVar(&c.adminAddr, "admin", ":9090", "serve metrics and health at this `address`")
	flag.StringVar(&c.resource, "resource", "http://127.0.0.1:8080/mcp", "the public `URL` of the MCP endpoint")
	flag.StringVar(&c.issuer, "issuer", "http://127.0.0.1:8081", "the `URL` of the authorization server")
	flag.DurationVar(&c.drain, "drain", 5*time.Second, "how long requests are served after SIGTERM, until load balancers know")
	flag.Parse()
	c.stateKey = os.Getenv("STATE_KEY") // a secret; other users can see flags
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &c)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx is done, and then shuts down in an order that loses no requests.
func run(ctx context.Context, c *config) error {
	u, err := url.Parse(c.resource)
	if err != nil || u.Host == "" {
		return fmt.Errorf("-resource is %q; expected a URL such as https://stock.example.com/mcp", c.resource)
	}
	c.host = u.Host
	public, err := new(net.ListenConfig).Listen(ctx, "tcp", c.addr)
	if err != nil {
		return err
	}
	private, err := new(net.ListenConfig).Listen(ctx, "tcp", c.adminAddr)
	if err != nil {
		return errors.Join(err, public.Close())
	}
	return serve(ctx, c, public, private)
}

func serve(ctx context.Context, c *config, public, private net.Listener) error {
	var ready atomic.Bool
	metrics := newRegistry()
	routes, endpoint, err := newRoutes(c, newInventory(), metrics, slog.Default())
	if err != nil {
		return errors.Join(err, public.Close(), private.Close())
	}
	server := newServer(routes)
	admin := newServer(adminRoutes(metrics, &ready))

	ended := make(chan error, 2)
	go func() { ended <- server.Serve(public) }()
	go func() { ended <- admin.Serve(private) }()
	ready.Store(true)
	slog.Info("serving", "mcp", c.resource, "admin", private.Addr().String())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}

	// Load balancers see that /readyz fails and send no new requests. The endpoint then
	// ends the streams, for which server.Shutdown would wait, and both wait for requests in
	// flight.
	ready.Store(false)
	time.Sleep(c.drain)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(endpoint.Shutdown(ctx), server.Shutdown(ctx), admin.Shutdown(ctx))
}

// newServer returns a server with the timeouts needed on the internet. WriteTimeout and
// ReadTimeout limit only the REST API: mcphttp.Options has its own, which do not interrupt
// slow tools.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
}

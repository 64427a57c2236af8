// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcpstdio"
)

// serveHTTP serves a handler at a path of an address until ctx is done. It then calls the
// shutdown functions, which end requests that would otherwise not finish, and waits for
// requests in flight, but no longer than a few seconds.
func (e *env) serveHTTP(ctx context.Context, addr, path string, h http.Handler, shutdowns ...func(context.Context) error) error {
	routes := http.NewServeMux()
	routes.Handle(path, h)
	listener, server, err := listen(ctx, addr, routes)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }() // returns after Shutdown
	e.term.printf("serving at http://%s%s\n", listener.Addr(), path)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var errs []error
	for _, shutdown := range shutdowns {
		errs = append(errs, shutdown(closing))
	}
	return errors.Join(append(errs, server.Shutdown(closing))...)
}

// listen returns a listener at an address, and a server for it with the handler.
func listen(ctx context.Context, addr string, h http.Handler) (net.Listener, *http.Server, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	return listener, &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute}, err
}

// tokenVariable is the environment variable with the token that callers of a server need.
const tokenVariable = "PSI_GATEWAY_TOKEN"

// A serving is how a command serves: at an address or, with stdio, on standard input and output.
type serving struct {
	addr  string
	stdio bool
}

// check validates the address and the token.
func (s *serving) check(command string) error {
	token := os.Getenv(tokenVariable)
	if host, _, err := net.SplitHostPort(s.addr); !s.stdio && token == "" && (err != nil || !network.IsLoopback(host)) {
		return usagef("%s: other machines can reach %q: set %s to a token that callers need, or serve at 127.0.0.1", command, s.addr, tokenVariable)
	}
	if token != "" && len(token) < 16 {
		return usagef("%s: %s has %d bytes, want at least 16, made at random", command, tokenVariable, len(token))
	}
	return nil
}

// serve serves a handler until ctx is done.
func (s *serving) serve(ctx context.Context, e *env, h mcp.Handler) error {
	if s.stdio {
		opts := &mcpstdio.StreamOptions{Principal: gatewayUser()}
		return ignoreEnd(ctx, mcpstdio.Serve(ctx, h, &mcpstdio.Options{In: e.stdin, Out: e.stdout, Stream: opts}))
	}
	endpoint := mcphttp.NewHandler(h, &mcphttp.Options{Logger: e.log})
	var verifier auth.Verifier = auth.VerifierFunc(func(*http.Request) (*mcp.Principal, error) { return gatewayUser(), nil })
	if token := os.Getenv(tokenVariable); token != "" {
		verifier = auth.APIKeys(map[string]*mcp.Principal{token: gatewayUser()}, nil)
	}
	return e.serveHTTP(ctx, s.addr, "/mcp", auth.Require(verifier, nil)(endpoint), endpoint.Shutdown)
}

// gatewayUser returns the principal of all callers. Without one, a caller without a session
// would count as another caller with each request, and get no question while an earlier call
// of its own is unfinished.
func gatewayUser() *mcp.Principal { return &mcp.Principal{Issuer: "psi gateway", Subject: "user"} }

// ignoreEnd returns the error of a server, or nil if it was interrupted, which is its
// normal end.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // as said
	}
	return err
}

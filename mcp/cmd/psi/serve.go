// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
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

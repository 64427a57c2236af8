// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"flag"
	"net"
	"net/http"

	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/apps/host"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp/debug"
)

func inspectCommand() *command {
	var addr string
	c := &command{
		name: "inspect", usage: "SERVER", summary: "open a live page about a server", connects: true, noResult: true,
		help: `inspect connects to a server and serves a page about it on this machine: its registrations, forms
that call tools and answer their questions, and recent calls. The apps of tools are shown by a
host beside the page, which has two ports. Open the address that it prints in a browser.
Only this machine can reach it. It ends with the connection to the server.`,
		example: "$ psi inspect http://127.0.0.1:8080/mcp\n",
		flags: func(f *flag.FlagSet) {
			f.StringVar(&addr, "http", "127.0.0.1:0", "serve the page at this `address`; the port 0 means any free one")
		},
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		t, rest, err := e.transport(ctx, c, words)
		switch {
		case err != nil:
			return err
		case len(rest) > 0:
			return c.wrongWords("want one server")
		}
		return e.inspect(ctx, t, addr)
	}
	return c
}

// inspect serves a page about a server until ctx is done or the connection ends.
func (e *env) inspect(ctx context.Context, t transport.Transport, addr string) error {
	conn, err := e.dial(ctx, t, &mcp.ClientOptions{
		Forward: true, // questions go to the page
		Capabilities: &mcp.ClientCapabilities{ // servers may hide their apps otherwise
			Extensions: mcp.Extensions{apps.Extension: apps.Client().Settings},
		},
	})
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // runs until one of them is done
		select {
		case <-conn.Done():
			stop()
		case <-serving.Done():
		}
	}()
	origin, err := e.serveApps(serving, conn, addr)
	if err != nil {
		return err
	}
	page := debug.NewHandler(conn, &debug.Options{Always: true, Apps: origin, Logger: e.log})
	if err := e.serveHTTP(serving, addr, "/", page); err != nil {
		return err
	}
	return conn.Err() // nil if psi was interrupted
}

// serveApps serves a host for the apps of a server until ctx is done, and returns its
// origin. If addr is a loopback address, the origin has the same host name, because
// browsers follow links of the page only to the same site.
func (e *env) serveApps(ctx context.Context, conn *mcp.Conn, addr string) (origin string, err error) {
	name, _, err := net.SplitHostPort(addr)
	if err != nil || !network.IsLoopback(name) {
		name = "127.0.0.1"
	}
	version, _ := buildVersion()
	client := mcp.NewClient("psi", version, &mcp.ClientOptions{
		Version: mcp.LatestVersion, Extensions: []*mcp.ClientExtension{apps.Client()}, Logger: e.log,
	})
	viewer, err := client.Connect(ctx, mcp.InProcess(conn)) // the page also shows its requests
	if err != nil {
		return "", err
	}
	e.onClose(func() { _ = viewer.Close() })
	sandbox, err := serveLocally(ctx, name, host.Sandbox())
	if err != nil {
		return "", err
	}
	h, err := host.New(viewer, sandbox, &host.Options{Logger: e.log})
	if err != nil {
		return "", err
	}
	return serveLocally(ctx, name, h)
}

// serveLocally serves a handler at a free port until ctx is done, and returns its origin.
func serveLocally(ctx context.Context, name string, h http.Handler) (origin string, err error) {
	listener, server, err := listen(ctx, net.JoinHostPort(name, "0"), h)
	if err != nil {
		return "", err
	}
	go func() { _ = server.Serve(listener) }() // returns when the server is closed
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return "http://" + listener.Addr().String(), nil
}

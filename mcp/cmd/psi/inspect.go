// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"flag"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/debug"
)

func inspectCommand() *command {
	var addr string
	c := &command{
		name: "inspect", usage: "SERVER", summary: "open a live page about a server", connects: true, noResult: true,
		help: `inspect connects to a server and serves a page about it on this machine, with what it has, forms
that call tools and answer their questions, and what was called. Open the address that it prints
in a browser. Only this machine can reach it. It ends with the connection to the server.`,
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
		conn, err := e.dial(ctx, t, &mcp.ClientOptions{Forward: true}) // questions go to the page
		if err != nil {
			return err
		}
		serving, stop := context.WithCancel(ctx)
		defer stop()
		go func() { // until one of them is done
			select {
			case <-conn.Done():
				stop()
			case <-serving.Done():
			}
		}()
		page := debug.NewHandler(conn, &debug.Options{Always: true, Logger: e.log})
		if err := e.serveHTTP(serving, addr, "/", page); err != nil {
			return err
		}
		return conn.Err() // nil if psi was interrupted
	}
	return c
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

// The server is a program that is started for the connection and ends with it. In this
// example, the program does not exist.
func ExampleNewCommand() {
	ctx := context.Background()
	transport := mcpstdio.NewCommand(exec.Command("./calculator", "-precise"), &mcpstdio.CommandOptions{Stderr: os.Stderr})
	conn, err := mcp.NewClient("example", "v1.0.0", nil).Connect(ctx, transport)
	if err != nil {
		fmt.Println("not connected:", errors.Is(err, os.ErrNotExist))
		return
	}
	defer conn.Close()
	sum, err := mcp.Call[int](ctx, conn, "add", map[string]int{"a": 1, "b": 2})
	if exit, ok := errors.AsType[*mcpstdio.ExitError](err); ok {
		fmt.Println("the server is gone, having said:", exit.Stderr)
		return
	}
	fmt.Println(sum, err)
	// Output: not connected: true
}

// A running server serves many clients on a socket. Users with access to its directory can
// connect.
func ExampleServeListener() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	listener, err := net.Listen("unix", filepath.Join(dir, "server.sock"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error)
	go func() { served <- mcpstdio.ServeListener(ctx, pinger(), listener, nil) }()

	conn, err := mcp.NewClient("example", "v1.0.0", nil).Connect(ctx, mcpstdio.NewSocket("unix", listener.Addr().String()))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mcp.Call[string](ctx, conn, "ping", nil))
	fmt.Println(conn.Close())
	stop()
	fmt.Println(<-served)
	// Output:
	// pong <nil>
	// <nil>
	// context canceled
}

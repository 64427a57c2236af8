// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

// The server is a program, which is started for the connection and ends with it.
func ExampleNewCommand() {
	ctx := context.Background()
	server := exec.Command("npx", "-y", "@modelcontextprotocol/server-everything")
	transport := mcpstdio.NewCommand(server, &mcpstdio.CommandOptions{Stderr: os.Stderr})
	conn, err := mcp.NewClient("example", "v1.0.0", nil).Connect(ctx, transport)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	text, err := mcp.Call[string](ctx, conn, "echo", map[string]string{"message": "hello"})
	var exit *mcpstdio.ExitError
	if errors.As(err, &exit) {
		log.Fatalf("the server is gone. It said:\n%s", exit.Stderr)
	}
	fmt.Println(text, err)
}

// A server that runs already serves many clients on a socket.
func ExampleServeListener() {
	dir, err := os.MkdirTemp("", "psi")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	listener, err := net.Listen("unix", filepath.Join(dir, "pinger"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- mcpstdio.ServeListener(ctx, listener, pinger(), nil) }()

	conn, err := mcp.NewClient("example", "v1.0.0", nil).Connect(ctx, mcpstdio.NewSocket("unix", filepath.Join(dir, "pinger")))
	if err != nil {
		log.Fatal(err)
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

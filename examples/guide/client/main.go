// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command client is the first client of the guide. It starts a server and calls its tool.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: client COMMAND [ARGUMENT ...]")
	}
	server := mcpstdio.NewCommand(exec.Command(os.Args[1], os.Args[2:]...), nil)
	if err := run(context.Background(), server, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, server transport.Transport, out io.Writer) error {
	conn, err := mcp.NewClient("first-client", "v1.0.0", nil).Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close() // which ends the server

	for tool, err := range conn.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, tool.Name+":", tool.Description)
	}

	type result struct {
		Count int `json:"count"`
	}
	r, err := mcp.Call[result](ctx, conn, "count", map[string]string{"text": "to be or not to be"})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "words:", r.Count)
	return nil
}

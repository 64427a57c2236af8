// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command client is the client of the README: it calls the tool of the command hello.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

func main() {
	if err := run(context.Background(), "http://127.0.0.1:8080/mcp"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string) error {
	conn, err := mcp.NewClient("caller", "v1.0.0", nil).Connect(ctx, mcphttp.NewTransport(url, nil))
	if err != nil {
		return err
	}
	defer conn.Close()
	greeting, err := mcp.Call[string](ctx, conn, "greet", map[string]string{"name": "Ada"})
	if err != nil {
		return err
	}
	fmt.Println(greeting)
	return nil
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command client is the client of the README: it lists the tools of the calculator at
// http://127.0.0.1:8080/mcp and calls one.
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
	client := mcp.NewClient("adder", "v1.0.0", nil)
	conn, err := client.Connect(ctx, mcphttp.NewTransport(url, nil))
	if err != nil {
		return err
	}
	defer conn.Close()

	for tool, err := range conn.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Println(tool.Name+":", tool.Description)
	}

	type result struct {
		Sum int `json:"sum"`
	}
	r, err := mcp.Call[result](ctx, conn, "add", map[string]int{"a": 2, "b": 3})
	if err != nil {
		return err
	}
	fmt.Println("2 + 3 =", r.Sum)
	return nil
}

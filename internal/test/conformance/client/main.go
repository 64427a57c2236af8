// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command client is the client tested by the official conformance suite. It performs a
// scenario against the URL given as its last argument.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	err := run(ctx, os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Args[len(os.Args)-1])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name, url string) error {
	perform, ok := scenarios[name]
	if !ok && strings.HasPrefix(name, "auth/") {
		perform, ok = callAll, true // the scenarios differ only in authorization
	}
	if !ok {
		return fmt.Errorf("unknown scenario %q", name)
	}
	auth, err := authorized(url)
	if err != nil {
		return err
	}
	defer auth.Close()
	client := mcp.NewClient("psi-conformance", "v1.0.0", &mcp.ClientOptions{Elicit: accept})
	conn, err := client.Connect(ctx, mcphttp.NewTransport(url, &mcphttp.TransportOptions{Client: &http.Client{Transport: auth}}))
	if err != nil {
		return err
	}
	defer conn.Close()
	return perform(ctx, conn)
}

// accept accepts every elicitation and leaves fields with a default unset.
func accept(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	var form struct {
		Properties map[string]struct {
			Type    string          `json:"type"`
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(p.RequestedSchema, &form); err != nil {
		return nil, err
	}
	content := map[string]any{}
	for name, field := range form.Properties {
		if field.Default == nil && field.Type == "boolean" {
			content[name] = true
		}
	}
	raw, err := json.Marshal(content)
	return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: raw}, err
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config_test

import (
	"context"
	"fmt"

	"github.com/go-psi/psi/mcp/config"
)

func ExampleParse() {
	file, err := config.Parse("mcp.json", []byte(`{
		"mcpServers": {
			"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]},
			"notes": {"url": "https://notes.example.com/mcp", "headers": {"Authorization": "Bearer ${NOTES_TOKEN}"}},
		}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, server := range file.Servers {
		fmt.Println(server.Name, server.Type)
		none := func(string) (string, bool) { return "", false } // in place of the environment
		if _, err := server.Transport(context.Background(), &config.Options{LookupEnv: none}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// files stdio
	// notes http
	// config: mcp.json: server "notes": headers.Authorization: ${NOTES_TOKEN}: the environment does not have it
}

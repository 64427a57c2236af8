// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redact_test

import (
	"testing"

	"github.com/go-psi/psi/internal/redact"
)

func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"https://mcp.example/mcp":            "https://mcp.example/mcp",
		"HTTPS://MCP.example:443/@user":      "HTTPS://MCP.example:443/@user", // unchanged
		"https://user:s3cret@mcp.example/":   "https://user:xxxxx@mcp.example/",
		"https://user@mcp.example/":          "https://user@mcp.example/",
		"https://user:s3/cret@mcp.example/":  "https://" + redact.Redacted + "@mcp.example/", // not a URL
		"https://user:s3%cret@mcp.example/":  "https://" + redact.Redacted + "@mcp.example/",
		"https://user:s3@cret@mcp.example/x": "https://user:xxxxx@mcp.example/x",
		"user:s3cret@mcp.example/mcp":        redact.Redacted + "@mcp.example/mcp", // the scheme is missing
		"127.0.0.1:s3cret@mcp.example":       redact.Redacted + "@mcp.example",
		"mailto:ann":                         "mailto:ann",
		"https://[":                          "https://[",
	} {
		if got := redact.URL(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

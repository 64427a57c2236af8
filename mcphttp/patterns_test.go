// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcphttp"
)

// Patterns that can never match a host or an origin cause a panic when the handler is
// created. The golden file contains the replacements that the panics suggest.
func TestPatterns(t *testing.T) {
	var text strings.Builder
	for name, options := range map[string]func(string) *mcphttp.Options{
		"hosts":   func(p string) *mcphttp.Options { return &mcphttp.Options{AllowedHosts: []string{p}} },
		"origins": func(p string) *mcphttp.Options { return &mcphttp.Options{AllowedOrigins: []string{p}} },
	} {
		text.Reset()
		for _, p := range []string{
			"", "*", "null", ":*", "/", "mcp.example.com", "mcp.example.com:8443", "mcp.example.com:*", "MCP.example.com", "mcp.example.com/", "mcp.example.com/mcp",
			"*.example.com", "mcp.example.*", "user@mcp.example.com", "[::1]", "[::1]:*", "::1", "a b", "%zz", "?", "//mcp.example.com",
			"https://app.example.com", "https://app.example.com:443", "https://app.example.com:*", "https://app.example.com/", "https://app.example.com/page",
			"https://*.example.com", "https://*.example.com:*", "*.example.com:8443", "https://*", "*.com", "*.localhost", "*.app.localhost", "https://*.0.0.1", "*.*.example.com",
			"a.*.example.com", "file://", "https://", "://app.example.com", "https:app.example.com", "https://user@app.example.com", "https://[::1]:*", "https://%zz",
			"http://localhost:*", "app://local", "https://app.example.com?", "file:///",
		} {
			fmt.Fprintf(&text, "%q: %s\n", p, panicOf(func() { newHandler(t, tools(), options(p)) }))
		}
		golden.Check(t, "patterns-"+name, text.String())
	}
}

// panicOf returns the text that a function panics with, or "ok" if it does not.
func panicOf(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return "ok"
}

// Pages of files send the origin "null", whatever scheme they were loaded with.
func TestFindingR28OriginOfFiles(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, `write "null"`) {
			t.Errorf("panicked with %s", text)
		}
	}()
	mcphttp.NewHandler(tools(), &mcphttp.Options{AllowedOrigins: []string{"file://"}})
}

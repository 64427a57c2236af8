// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcpstdio"
)

// TestMain is the server when a test starts this program as one.
func TestMain(m *testing.M) {
	if os.Getenv("CLIENT_TEST_SERVER") == "" {
		os.Exit(m.Run())
	}
	if err := mcpstdio.Serve(context.Background(), newServer()); err != nil {
		os.Exit(1)
	}
}

// A server that is a command gets all of its words, however few the subcommand has.
func TestCommand(t *testing.T) {
	t.Setenv("CLIENT_TEST_SERVER", "yes")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"list":                             "tool count",
		"call order {}":                    `{"size":"small","amount":1,"agreed":true}`,
		`prompt explain {"topic":"Spain"}`: "Explain Spain.\n",
	} {
		t.Run(args, func(t *testing.T) {
			var out, errOut bytes.Buffer
			words := append(strings.Fields(args), "--", program, "an argument")
			if err := run(t.Context(), words, strings.NewReader("small\ntrue\n\n\n"), &out, &errOut); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(out.String(), want) {
				t.Errorf("wrote %q, want %q", &out, want)
			}
		})
	}
}

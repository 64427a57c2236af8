// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
)

// TestExamples runs the examples of the help texts, at a server for the URL that they name and
// at the program of this test for the command ./server. If an example shows what psi prints,
// that is all it prints.
func TestExamples(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	isolate(t)
	t.Setenv(isServer, "yes")
	t.Chdir(t.TempDir())
	mux := newServer()
	url := serve(t, mux)
	go keepChanging(t, mux)
	servers := fmt.Sprintf(`{"mcpServers": {"kitchen": {"url": %q}, "pantry": {"command": %q, "env": {%q: "yes"}}}}`, url, self, isServer)
	if err := os.WriteFile("servers.json", []byte(servers), 0o600); err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer("http://127.0.0.1:8080/mcp", url, "./server", self)
	for _, c := range commands() {
		if c.example == "" {
			t.Errorf("psi help %s has no example", c.name)
		}
		for _, example := range strings.Split(c.example, "$ psi ")[1:] {
			line, want, _ := strings.Cut(example, "\n")
			t.Run(line, func(t *testing.T) {
				got := psi(t, "", shellWords(words.Replace(line))...)
				if got.code != exitOK || want != "" && got.out != want {
					t.Errorf("exit code %d, wrote:\n%s%swant:\n%s", got.code, got.out, got.errOut, want)
				}
			})
		}
	}
}

// keepChanging updates a resource again and again, until the test ends.
func keepChanging(t *testing.T, mux *mcp.Mux) {
	for {
		mux.ResourceUpdated("test://menu")
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			return
		}
	}
}

// shellWords splits a line as a shell does, at spaces outside of single quotes.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if quoted := i%2 == 1; quoted {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
)

// TestExamples runs the examples of the help texts. A test server stands in for the URL in
// them, and the test binary for the command ./server. If an example shows output, psi must
// print exactly that.
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
	writeFile(t, "openapi.yaml", ordersDocument)
	writeFile(t, "server.json", kitchenCard)
	words := strings.NewReplacer("http://127.0.0.1:8080/mcp", url, "./server", self)
	for _, c := range commands() {
		if c.example == "" {
			t.Errorf("psi help %s has no example", c.name)
		}
		for _, example := range strings.Split(c.example, "$ psi ")[1:] {
			line, want, _ := strings.Cut(example, "\n")
			t.Run(line, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var out bytes.Buffer
				errOut := &stopper{stop: stop}
				code := run(ctx, shellWords(words.Replace(line)), strings.NewReader(""), &out, errOut)
				if code != exitOK || want != "" && out.String() != want {
					t.Errorf("exit code %d, wrote:\n%s%swant:\n%s", code, &out, errOut, want)
				}
			})
		}
	}
}

// A stopper stops a serving command once it has started to serve.
type stopper struct {
	bytes.Buffer
	stop func()
}

func (s *stopper) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("serving at ")) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

// keepChanging updates a resource repeatedly until the test ends.
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

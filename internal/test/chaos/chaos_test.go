// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	runRole() // the processes that are killed run this binary
	os.Exit(m.Run())
}

// A short run of the command finds nothing wrong.
func TestChaos(t *testing.T) {
	for engine, length := range map[string]time.Duration{"nats": 30 * time.Second, "redis": 15 * time.Second} {
		t.Run(engine, func(t *testing.T) {
			if engine == "redis" && !hasRedis() {
				t.Skip(errNoRedis)
			}
			dir := t.TempDir()
			log, err := os.Create(filepath.Join(dir, "log"))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			r, err := run(t.Context(), config{store: engine, length: length, clients: 12, guests: 4, replica: 4 * time.Second, node: 10 * time.Second, seed: 1}, dir, log)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			r.print(&out)
			t.Log("\n" + out.String())
			if r.wrongs > 0 {
				logged, _ := os.ReadFile(log.Name())
				t.Errorf("something was wrong; logged:\n%s", logged)
			}
			for _, kind := range []string{"connect", "echo", "whoami", "ask", "work", "render", "publish", "told", "login", "use", "refresh", "refused"} {
				if r.counts[kind] == nil || r.counts[kind].done == 0 {
					t.Errorf("nothing of the kind %q was done", kind)
				}
			}
		})
	}
}

func hasRedis() bool {
	for _, name := range []string{"valkey-server", "redis-server"} {
		if _, err := exec.LookPath(name); err == nil {
			return true
		}
	}
	return false
}

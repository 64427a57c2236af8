// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	runRole() // the processes of the cluster are this program
	os.Exit(m.Run())
}

// Two replicas and a node of the engine are killed. What the client has goes on, and nothing
// is lost.
func TestNothingIsLost(t *testing.T) {
	c := start(t)
	before := c.await(t, "the client has everything", func(rows []row) bool { return progressed(rows, make([]row, len(rows))) })
	for _, m := range []*member{c.replicas[0], c.nodes[0], c.replicas[1]} {
		c.toggle(m)
		after := before
		before = c.await(t, "all goes on without "+m.String(), func(rows []row) bool { return progressed(rows, after) })
		c.toggle(m)
		c.await(t, m.String()+" is back", func([]row) bool {
			var s any
			state, _ := m.state(&s)
			return state == "up"
		})
	}
	for _, r := range before {
		if r.Lost > 0 {
			t.Errorf("lost %d of what the client did with its %s", r.Lost, r.Name)
		}
	}
}

// progressed reports whether more was completed of everything, and not only what was under way.
func progressed(rows, before []row) bool {
	for i := range rows {
		if rows[i].Done < before[i].Done+2 {
			return false
		}
	}
	return len(rows) > 0
}

// start starts a cluster that ends with the test.
func start(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := freeAddrs(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCluster(t.Context(), addrs[0], dir, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, addrs[0]) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = log.Close()
		if logged, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("logged:\n%s", logged)
		}
	})
	return c
}

// await waits until the rows of the client are as they should be.
func (c *cluster) await(t *testing.T, what string, ok func([]row) bool) []row {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	for begun := time.Now(); ctx.Err() == nil; sleep(ctx, 100*time.Millisecond) {
		var rows []row
		if state, _ := c.client.state(&rows); state == "up" && ok(rows) {
			t.Logf("%s, after %v", what, time.Since(begun).Round(100*time.Millisecond))
			return rows
		}
	}
	var b bytes.Buffer
	painter(false).write(&b, c)
	t.Fatalf("not within the time: %s\n%s", what, b.String())
	return nil
}

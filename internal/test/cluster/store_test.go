// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package cluster_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-psi/psi/internal/test/cluster"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/storetest"
)

// A store served by another process fulfils the contract of stores.
func TestStore(t *testing.T) {
	address := serveStore(t, store.NewMemory(nil))
	storetest.Run(t, func(t *testing.T) store.Store { return dialStore(t, address) })
}

// serveStore serves a store on a socket until the test ends, and returns its address.
func serveStore(t *testing.T, s store.Store) (address string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "psi") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	address = filepath.Join(dir, "store")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", address)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cluster.Serve(l, s) // until it is closed
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return address
}

func dialStore(t *testing.T, address string) store.Store {
	t.Helper()
	s, err := cluster.Dial("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/storetest"
)

// This is the complete test of an adapter. Each test opens its own store, which must be
// empty; t.Cleanup closes it.
func ExampleRun() { //nolint:testableexamples // it shows a test, which examples cannot run
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		storetest.Run(t, func(*testing.T) store.Store { return store.NewMemory(nil) })
	}
}

// In a synctest bubble, the tests that wait for something to expire take no time.
func ExampleTests() { //nolint:testableexamples // it shows a test, which examples cannot run
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		for name, test := range storetest.Tests() {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, store.NewMemory(nil)) })
			})
		}
	}
}

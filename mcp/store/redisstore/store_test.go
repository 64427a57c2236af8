// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore_test

import (
	"testing"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/storetest"
)

func TestStore(t *testing.T) {
	client := connect(t, start(t).address())
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, client, nil) })
}

func TestStoreInCluster(t *testing.T) {
	client := connect(t, newCluster(t)...)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, client, nil) })
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore_test

import (
	"testing"

	"github.com/go-psi/psi/mcp/store/natsstore"
	"github.com/go-psi/psi/mcp/store/storetest"
)

func BenchmarkStore(b *testing.B) {
	b.Run("one server", func(b *testing.B) { storetest.Bench(b, open(b, connect(b, single(b).ClientURL()), nil)) })
	b.Run("in memory", func(b *testing.B) {
		storetest.Bench(b, open(b, connect(b, single(b).ClientURL()), &natsstore.Options{InMemory: true}))
	})
	b.Run("cluster", func(b *testing.B) {
		storetest.Bench(b, open(b, connect(b, newCluster(b).urls()), &natsstore.Options{Replicas: 3}))
	})
}

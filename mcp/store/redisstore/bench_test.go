// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore_test

import (
	"testing"

	"github.com/go-psi/psi/mcp/store/storetest"
)

func BenchmarkStore(b *testing.B) {
	b.Run("one server", func(b *testing.B) { storetest.Bench(b, open(b, connect(b, start(b).address()), nil)) })
	b.Run("appendonly", func(b *testing.B) {
		storetest.Bench(b, open(b, connect(b, start(b, "--appendonly", "yes").address()), nil))
	})
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

// counting records what is written to a store.
type counting struct {
	store.Values
	puts    atomic.Int64
	written safeBuffer
}

func (c *counting) String() string { return c.written.String() }

func (c *counting) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	c.puts.Add(1)
	_, _ = c.written.Write([]byte(key))
	_, _ = c.written.Write(value)
	return c.Values.Put(ctx, key, value, version, ttl)
}

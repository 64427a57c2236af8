// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"time"
)

// ErrNoAnswer is why a connection has ended whose server gave no sign of life; see
// [ClientOptions].KeepAlive.
var ErrNoAnswer = errors.New("mcp: the server does not answer")

// keepAlive asks the server for signs of life until the connection ends.
func (c *Conn) keepAlive(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for misses := 0; misses < maxMisses; {
		select {
		case <-c.ctx.Done():
			return
		case <-c.wire.Done():
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(c.ctx, interval)
		err := c.era.ping(ctx)
		cancel()
		if err == nil {
			misses = 0
			continue
		}
		misses++
	}
	c.client.opts.Logger.Warn("mcp: the server does not answer; closing the connection", "pings", maxMisses)
	c.lost.Store(true)
	_ = c.Close() // what matters is why
}

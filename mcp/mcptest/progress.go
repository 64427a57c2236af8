// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"

	"github.com/go-psi/psi/mcp"
)

type progressKey struct{}

// WithProgress makes the requests of a [Conn] that are sent with the context ask
// for progress. Fn is called with it, in order, and not after the result is there.
func WithProgress(ctx context.Context, fn func(p *mcp.ProgressParams)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

func progressFrom(ctx context.Context) func(*mcp.ProgressParams) {
	fn, _ := ctx.Value(progressKey{}).(func(*mcp.ProgressParams))
	return fn
}

// expectProgress returns what ends the expectation.
func (c *Conn) expectProgress(token mcp.ID, fn func(*mcp.ProgressParams)) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress[token] = fn
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.progress, token)
	}
}

func (c *Conn) progressed(n Notification) {
	p := new(mcp.ProgressParams)
	if err := n.Decode(p); err != nil {
		c.tb.Errorf("mcptest: the server sent malformed progress %s: %v", n.Params, err)
		return
	}
	c.mu.Lock()
	fn := c.progress[p.ProgressToken]
	c.mu.Unlock()
	if fn != nil {
		fn(p)
	}
}

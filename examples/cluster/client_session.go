// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// useSession runs a client of an older revision: one session, in which it also answers
// questions.
func (c *client) useSession(ctx context.Context) {
	var conn *mcp.Conn
	c.do(ctx, &c.rows[0], func(ctx context.Context) (_ string, err error) {
		conn, err = c.newMCP(mcp.LegacyVersions()[0]).Connect(ctx, mcphttp.NewTransport(c.url, nil))
		return "connected", err
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	var first string
	whoami := func(ctx context.Context) (string, error) {
		id, err := mcp.Call[string](ctx, conn, "whoami", struct{}{})
		if first == "" {
			first = id
		}
		return "the session is " + first[:min(8, len(first))] + "…", check(err, id, first)
	}
	order := func(ctx context.Context) (string, error) {
		got, err := mcp.Call[string](ctx, conn, "order", orderIn{"soup"})
		return got, check(err, got, "soup and tea")
	}
	var both sync.WaitGroup
	both.Go(func() { c.repeat(ctx, &c.rows[0], 100*time.Millisecond, whoami) })
	both.Go(func() { c.repeat(ctx, &c.rows[1], 100*time.Millisecond, order) })
	both.Wait()
}

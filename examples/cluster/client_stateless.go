// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
)

// useStateless runs a client of the newest revision: a subscription and tasks.
func (c *client) useStateless(ctx context.Context) {
	up := c.newMCP(mcp.LatestVersion).Maintain(ctx, mcphttp.NewTransport(c.url, nil), nil)
	defer up.Close()
	var both sync.WaitGroup
	both.Go(func() { c.followNews(ctx, up) })
	both.Go(func() { c.renderFilms(ctx, up) })
	both.Wait()
}

// followNews publishes news, and reads them when it is notified.
func (c *client) followNews(ctx context.Context, up *mcp.Upstream) {
	told := make(chan struct{}, 1)
	c.do(ctx, &c.rows[2], func(attempt context.Context) (string, error) {
		if _, err := up.Conn(attempt); err != nil {
			return "", err
		}
		_, err := up.Listen(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{newsURI}}, func(mcp.Change) {
			select {
			case told <- struct{}{}:
			default:
			}
		})
		return "subscribed", err
	})
	news := 0
	c.repeat(ctx, &c.rows[2], 200*time.Millisecond, func(ctx context.Context) (string, error) {
		conn, err := up.Conn(ctx)
		if err != nil {
			return "", err
		}
		if _, err := mcp.Call[int](ctx, conn, "publish", newsIn{news + 1}); err != nil {
			return "", err
		}
		for {
			select {
			case <-told:
			case <-time.After(callTimeout): // killed before notifying the others
				return "", fmt.Errorf("not told of news %d", news+1)
			case <-ctx.Done():
				return "", ctx.Err()
			}
			res, err := conn.ReadResource(ctx, &mcp.ReadResourceParams{URI: newsURI})
			if err != nil {
				return "", err
			}
			if n, _ := strconv.Atoi(res.Contents[0].Text); n > news {
				news = n
				return fmt.Sprintf("told of news %d", news), nil
			}
		}
	})
}

// renderFilms starts one task after another, each when the previous one has its result.
func (c *client) renderFilms(ctx context.Context, up *mcp.Upstream) {
	for ctx.Err() == nil {
		id := ""
		c.do(ctx, &c.rows[3], func(ctx context.Context) (string, error) {
			conn, err := up.Conn(ctx)
			if err != nil {
				return "", err
			}
			if id == "" {
				task, _, err := tasks.Start(ctx, conn, &mcp.CallToolParams{Name: "render", Arguments: json.RawMessage(`{"scenes":6}`)})
				if err != nil {
					return "", err
				}
				id = task.ID
			}
			res, err := tasks.Attach(conn, id).Wait(ctx)
			if err != nil {
				return "", err
			}
			got := res.Content[0].(*mcp.TextContent).Text
			return "rendered scenes " + got, check(err, got, "0 1 2 3 4 5")
		})
	}
}

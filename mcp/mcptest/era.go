// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"encoding/json"

	"github.com/go-psi/psi/mcp"
)

// era is what a client does otherwise in one era than in the other.
type era interface {
	version() string
	// open does what must come before requests.
	open(ctx context.Context) error
	// addMeta completes the params of a request or notification.
	addMeta(p *params)
	// request sends a request and answers the questions on the way.
	request(ctx context.Context, method string, p *params) (json.RawMessage, error)
	// answer answers a request of the server.
	answer(ctx context.Context, req *mcp.Request) (any, error)
	discover(ctx context.Context) (*mcp.DiscoverResult, error)
	setLogLevel(ctx context.Context, level mcp.LoggingLevel) error
	listen(ctx context.Context, f mcp.SubscriptionFilter) (*Subscription, error)
}

func eraOf(c *Conn) era {
	if c.client.isLegacy() {
		return &legacyEra{Conn: c}
	}
	return &modernEra{c}
}

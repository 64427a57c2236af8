// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"errors"

	"github.com/go-psi/psi/mcp"
)

// A Subscription is a client's wish to hear of changes, as [Conn.Listen] makes it.
type Subscription struct {
	// Accepted is what the server will tell of.
	Accepted mcp.SubscriptionFilter

	done chan struct{}
	err  error
}

var errNotAcknowledged = errors.New("mcptest: the subscription ended before it was acknowledged")

// Listen asks the server to tell of changes, which then are among
// [Conn.Notifications]. It returns when the server has agreed. The subscription
// ends with ctx.
//
// In the legacy era, servers tell of all lists, asked for or not.
func (c *Conn) Listen(ctx context.Context, f mcp.SubscriptionFilter) (*Subscription, error) {
	return c.era.listen(ctx, f)
}

// Wait waits for the end of the subscription. It returns nil if the server has
// ended it, otherwise why it ended.
func (s *Subscription) Wait() error {
	<-s.done
	return s.err
}

// subscriptionOf is the id of the listen request that a notification belongs to,
// zero if there is none.
func subscriptionOf(n Notification) mcp.ID {
	var p struct {
		Meta mcp.Meta `json:"_meta"`
	}
	var id mcp.ID
	if n.Decode(&p) == nil {
		p.Meta.Get(mcp.MetaSubscriptionID, &id)
	}
	return id
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-psi/psi/mcp"
)

// cancelTime is how long it may take to tell a server that a call is cancelled.
const cancelTime = 5 * time.Second

// cancelled tells the server, which may be gone, that nobody waits for a call. The
// context of the call says why.
func (b *inbox) cancelled(ctx context.Context, id mcp.ID, p *peer, tell func(x *exchange, body []byte) error) {
	body := cancelNotice(id, context.Cause(ctx))
	ctx = context.WithoutCancel(ctx)
	b.run(func() {
		ctx, cancel := context.WithTimeout(ctx, cancelTime)
		defer cancel()
		x := b.exchange(ctx)
		defer x.end()
		if err := tell(x, body); err != nil {
			p.opts.Logger.DebugContext(ctx, "mcphttp: a call could not be cancelled", "error", err)
		}
	})
}

func cancelNotice(id mcp.ID, why error) []byte {
	params, err := json.Marshal(&mcp.CancelledParams{RequestID: id, Reason: why.Error()})
	if err != nil {
		panic(err) // an id and a string can be encoded
	}
	return mcp.AppendNotification(nil, mcp.NotificationCancelled, params)
}

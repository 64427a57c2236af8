// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"

	"github.com/go-psi/psi/mcp"
)

// Shutdown ends the handler in good order: it takes no new requests, ends
// subscriptions and the streams of sessions, and waits for the requests that are
// being served. When ctx is done it cancels those and returns ctx's error. It is
// to be called before, or at the same time as, http.Server.Shutdown, which would
// wait for streams for ever. It may be called more than once.
func (h *Handler) Shutdown(ctx context.Context) error {
	idle := h.requests.refuse()
	h.close(mcp.ErrClosed)
	h.listening.end(mcp.ErrClosed)
	h.sessions.endStreams()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = ctx.Err()
	}
	h.kill(mcp.ErrClosed)
	h.inflight.end(mcp.ErrClosed)
	h.sessions.closeAll()
	return err
}

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
	idle := h.refuse()
	h.close(mcp.ErrClosed)
	h.sessions.endStreams()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = ctx.Err()
	}
	h.kill(mcp.ErrClosed)
	h.sessions.closeAll()
	return err
}

func (h *Handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.idle != nil {
		return false
	}
	h.active++
	return true
}

func (h *Handler) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.active--
	if h.active == 0 && h.idle != nil {
		close(h.idle)
	}
}

func (h *Handler) refuse() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.idle == nil {
		h.idle = make(chan struct{})
		if h.active == 0 {
			close(h.idle)
		}
	}
	return h.idle
}

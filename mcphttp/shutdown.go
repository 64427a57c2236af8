// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import "context"

// Shutdown gracefully shuts down the handler. It refuses new requests, ends subscriptions
// and the streams of sessions, and waits for the requests in flight; a request whose body
// has not arrived is not in flight. If ctx is done first, Shutdown cancels the remaining
// requests and returns ctx's error.
//
// Call it before or concurrently with http.Server.Shutdown, which would otherwise wait for
// streams forever. It may be called more than once.
func (h *Handler) Shutdown(ctx context.Context) error {
	h.mustBeMade()
	drained := h.endpoint.Close()
	h.legacy.endStreams()
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		err = ctx.Err()
	}
	h.endpoint.Kill()
	h.legacy.closeSessions()
	return err
}

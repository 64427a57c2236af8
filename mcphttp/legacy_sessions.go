// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"iter"
	"slices"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/internal/endpoint"
	"github.com/go-psi/psi/mcphttp/internal/legacyhttp"
)

// legacy returns the options for sessions.
func (o *Options) legacy() legacyhttp.Options {
	return legacyhttp.Options{
		SessionIdle: o.SessionIdle, MaxSessions: o.MaxSessions, MaxSessionsPerCaller: o.MaxSessionsPerCaller,
		KeepAlive: o.KeepAlive, AskTimeout: o.AskTimeout,
		Store: o.Store, Replay: o.Replay, ReplayPerCaller: o.ReplayPerCaller, Retry: o.Retry, Logger: o.Logger,
	}
}

// Sessions yields the sessions of the legacy era that are open in this process at the time
// of the call, in no particular order.
func (h *Handler) Sessions() iter.Seq[*mcp.Session] {
	h.mustBeMade()
	return slices.Values(h.legacy.Sessions())
}

// Streams returns the event streams of the sessions of a handler, sorted by session and name.
func (internals) Streams(handler any) []seam.Stream {
	if h, ok := handler.(*Handler); ok {
		return h.legacy.Streams()
	}
	return nil
}

// ErrNoStream is returned by [CloseStream] if the request has no stream that the client
// could resume.
var ErrNoStream = legacyhttp.ErrNoStream

// CloseStream closes the connection on which the client waits for the response to the
// request of ctx. The request continues, and the client reconnects for the response. Use it
// to free the connection while a long request runs. The client must speak 2025-11-25 and
// accept event streams; otherwise CloseStream returns [ErrNoStream].
func CloseStream(ctx context.Context) error {
	if v := endpoint.ValuesFromContext(ctx); v != nil && v.Stream != nil {
		return v.Stream.CloseConnection(ctx)
	}
	return ErrNoStream
}

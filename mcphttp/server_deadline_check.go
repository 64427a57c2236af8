// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// deadlineCheck warns if WriteTimeout cannot replace that of http.Server, because
// middleware hides the deadlines of the response writer. It looks at the first request:
// the middleware of all others is the same.
type deadlineCheck struct{ done atomic.Bool }

func (c *deadlineCheck) check(w http.ResponseWriter, r *http.Request, logger *slog.Logger) {
	if c.done.Load() || c.done.Swap(true) {
		return
	}
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server != nil && server.WriteTimeout > 0 && !hasDeadlines(w) {
		logger.WarnContext(r.Context(), "mcphttp: http.Server.WriteTimeout will cut off streams and slow answers: "+
			"the response writer has no Unwrap method, which the middleware that made it should add",
			"writer", fmt.Sprintf("%T", w), "WriteTimeout", server.WriteTimeout)
	}
}

// hasDeadlines reports whether w, or a writer that it wraps, has deadlines.
func hasDeadlines(w http.ResponseWriter) bool {
	for {
		switch f := w.(type) {
		case interface {
			SetWriteDeadline(deadline time.Time) error
		}:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = f.Unwrap()
		default:
			return false
		}
	}
}

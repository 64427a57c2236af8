// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyhttp

import (
	"log/slog"
	"time"

	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// Options are the options of mcphttp for sessions, with defaults applied.
type Options struct {
	SessionIdle                       time.Duration
	MaxSessions, MaxSessionsPerCaller int
	KeepAlive                         time.Duration
	AskTimeout                        time.Duration
	Store                             store.Store // nil if sessions stay in this process
	Replay                            store.Retention
	ReplayPerCaller                   int
	Retry                             time.Duration
	Logger                            *slog.Logger
}

// questionLifetime returns how long the store records which replica asked a question.
func (o *Options) questionLifetime() time.Duration {
	switch {
	case o.AskTimeout == 0:
		return time.Hour
	case o.AskTimeout < 0:
		return 24 * time.Hour // a store needs a limit
	}
	return o.AskTimeout
}

func (o *Options) server(h mcp.Handler) *legacyserver.Server {
	return legacyserver.NewServer(h, &legacyserver.Options{AskTimeout: o.AskTimeout, KeepAlive: o.KeepAlive, Logger: o.Logger})
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyhttp

import (
	"log/slog"
	"time"

	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/mcp"
)

// Options are the options of mcphttp for sessions, with defaults applied.
type Options struct {
	Stateless         bool    // there are no sessions
	Shared            *Shared // nil if sessions stay in this process
	Idle              time.Duration
	Max, MaxPerCaller int
	KeepAlive         time.Duration
	AskTimeout        time.Duration
	Replay            int // bytes of events that are kept for one caller
	Logger            *slog.Logger
}

func (o *Options) server(h mcp.Handler) *legacyserver.Server {
	return legacyserver.NewServer(h, &legacyserver.Options{AskTimeout: o.AskTimeout, KeepAlive: o.KeepAlive, Logger: o.Logger})
}

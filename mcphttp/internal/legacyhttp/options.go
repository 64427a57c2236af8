// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyhttp

import (
	"log/slog"
	"time"
)

// Options are the options of mcphttp for sessions, with defaults applied.
type Options struct {
	Stateless         bool    // there are no sessions
	Shared            *Shared // nil if sessions stay in this process
	Idle              time.Duration
	Max, MaxPerCaller int
	Replay            int // bytes of events that are kept for one caller
	Logger            *slog.Logger
}

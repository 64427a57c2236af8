// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"log/slog"
	"maps"
	"sync"
)

// tally is a slog.Handler that counts warnings and errors by message.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

// Enabled implements slog.Handler.
func (*tally) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle implements slog.Handler.
func (t *tally) Handle(_ context.Context, r slog.Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[r.Message]++
	return nil
}

// WithAttrs implements slog.Handler.
func (t *tally) WithAttrs([]slog.Attr) slog.Handler { return t }

// WithGroup implements slog.Handler.
func (t *tally) WithGroup(string) slog.Handler { return t }

func (t *tally) all() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

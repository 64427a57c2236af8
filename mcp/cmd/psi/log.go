// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/printable"
)

// A logHandler is a [slog.Handler] that writes to the terminal. It writes warnings and
// errors or, if verbose is set, everything. Messages on the wire, logged by
// [transport.WithLogging], are lines with an arrow.
type logHandler struct {
	term    *terminal
	verbose *bool
	attrs   []slog.Attr
}

// Enabled implements [slog.Handler].
func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return *h.verbose || level >= slog.LevelWarn
}

// WithAttrs implements [slog.Handler].
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *h
	more.attrs = slices.Concat(h.attrs, attrs)
	return &more
}

// WithGroup implements [slog.Handler]. Groups are not shown.
func (h *logHandler) WithGroup(string) slog.Handler { return h }

// arrows maps the log messages about the wire to directions.
var arrows = map[string]string{
	"mcp: sent": "-->", "mcp: received": "<--", "mcp: answered": "<--", "mcp: failed": "<-X",
}

// stderrMessage is the log message for a line of a command's standard error.
const stderrMessage = "mcpstdio: the server's standard error"

// Handle implements [slog.Handler].
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	arrow, isWire := arrows[r.Message]
	words := []string{arrow}
	switch {
	case r.Message == stderrMessage:
		words = []string{"stderr:"}
	case !isWire:
		words = []string{strings.ToLower(r.Level.String()) + ":", r.Message}
	}
	add := func(a slog.Attr) bool {
		switch value := a.Value.String(); {
		case value == "" || a.Key == "about":
		case r.Message == stderrMessage:
			if a.Key == "line" {
				words = append(words, value)
			}
		case isWire && a.Key != "error":
			words = append(words, value)
		default:
			words = append(words, a.Key+"="+value)
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	h.term.printf("%s\n", printable.Line(strings.Join(words, " ")))
	return nil
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"io"
	"time"
)

// An Event is what the client reads from an event stream.
type Event struct {
	Kind, ID, Data string
	Retry          time.Duration
	HasData        bool
	TooLong        bool
}

// ReadEvents reads a stream to its end.
func ReadEvents(in io.Reader, limit int64) ([]Event, error) {
	r := newEventReader(in, limit)
	var all []Event
	for {
		e, err := r.next()
		if err != nil {
			return all, err
		}
		all = append(all, Event{e.kind, e.id, string(e.data), e.retry, e.hasData, e.isTooLong})
	}
}

// Leftovers says what is left of the sessions of a handler that was shut down, "" if nothing.
func Leftovers(handler any) string {
	switch h := handler.(type) {
	case *SSEHandler:
		return h.legacy.Leftovers()
	case *Handler:
		return h.legacy.Leftovers()
	}
	return ""
}

// DefaultOptions returns options with their defaults.
func DefaultOptions(o *Options) Options { return o.withDefaults() }

// DefaultTransportOptions returns options with their defaults.
func DefaultTransportOptions(o *TransportOptions) TransportOptions { return o.withDefaults() }

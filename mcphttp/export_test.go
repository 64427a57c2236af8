// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"io"
	"time"
)

// An Event is an event as read by the client.
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

// Leftovers describes what remains of the sessions of a handler after Shutdown, or returns
// "" if nothing does.
func Leftovers(handler any) string {
	switch h := handler.(type) {
	case *SSEHandler:
		return h.leftovers()
	case *Handler:
		return h.legacy.leftovers()
	}
	return ""
}

// DefaultOptions returns o with defaults filled in.
func DefaultOptions(o *Options) Options { return o.withDefaults(nil) }

// DefaultTransportOptions returns o with defaults filled in.
func DefaultTransportOptions(o *TransportOptions) TransportOptions { return o.withDefaults() }

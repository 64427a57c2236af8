// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "context"

// inflight are the requests of a session that are being served. They are few, so
// that a list does, and an idle session keeps next to nothing.
type inflight []inflightRequest

type inflightRequest struct {
	id     ID // by value
	cancel context.CancelCauseFunc
}

// keptInFlight is for how many requests at once an idle session keeps room.
const keptInFlight = 2

// find returns what cancels a request, or nil.
func (f inflight) find(id ID) context.CancelCauseFunc {
	id = id.Canonical()
	for i := range f {
		if f[i].id == id {
			return f[i].cancel
		}
	}
	return nil
}

func (f *inflight) add(id ID, cancel context.CancelCauseFunc) {
	*f = append(*f, inflightRequest{id.Canonical(), cancel})
}

func (f *inflight) remove(id ID) {
	list := *f
	id = id.Canonical()
	for i := range list {
		if list[i].id == id {
			last := len(list) - 1
			list[i], list[last] = list[last], inflightRequest{}
			*f = list[:last]
			break
		}
	}
	if len(*f) == 0 && cap(*f) > keptInFlight {
		*f = nil
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"net/http"

	"github.com/go-psi/psi/internal/seam"
)

// Internal is for the packages of this module, because only they have a key. Its result can
// change at any time.
func Internal(seam.Key) internals { return internals{} }

// internals are the functions of this package that package debug uses.
type internals struct{}

// Guard returns the checks of Host and Origin that a [Handler] with these options makes.
// The function returns why a request is refused, or "" if it is allowed.
func (internals) Guard(o *Options) func(r *http.Request) string {
	g := newGuard(o)
	return g.check
}

// ArrivedOnLoopback reports whether the connection of r was accepted on a loopback address.
func (internals) ArrivedOnLoopback(r *http.Request) bool { return arrivedOnLoopback(r) }

// InFlight returns the number of HTTP requests in flight at a handler, streams and calls.
func (internals) InFlight(handler any) int {
	switch h := handler.(type) {
	case *Handler:
		return h.endpoint.Requests.Count()
	case *SSEHandler:
		return h.endpoint.Requests.Count()
	}
	return 0
}

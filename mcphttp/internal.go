// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/go-psi/psi/internal/seam"
)

// Internal is for the packages of this module, which alone have a key. What it returns can
// change at any time.
func Internal(seam.Key) internals { return internals{} }

// internals are the functions of this package that package debug needs.
type internals struct{}

// Guard returns a function that says why a request is refused, "" if it is not: the checks of
// Host and Origin that a [Handler] makes.
func (internals) Guard(o *Options) func(r *http.Request) string {
	g := newGuard(o)
	return g.check
}

// ArrivedOnLoopback reports whether the connection of r was accepted on a loopback address.
func (internals) ArrivedOnLoopback(r *http.Request) bool { return arrivedOnLoopback(r) }

// InFlight returns how many HTTP requests an endpoint serves: streams and calls.
func (internals) InFlight(endpoint any) int {
	switch h := endpoint.(type) {
	case *Handler:
		return h.requests.count()
	case *SSEHandler:
		return h.requests.count()
	}
	return 0
}

// Streams returns the event streams of the sessions of an endpoint, in order.
func (internals) Streams(endpoint any) (all []seam.Stream) {
	h, ok := endpoint.(*Handler)
	if !ok {
		return nil
	}
	for _, s := range h.sessions.all() {
		for _, st := range s.allStreams() {
			all = append(all, st.describe())
		}
	}
	slices.SortFunc(all, func(a, b seam.Stream) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// allStreams returns the streams that clients can resume.
func (s *session) allStreams() (all []*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.standalone.stream; st != nil {
		all = append(all, st)
	}
	for _, st := range s.streams {
		all = append(all, st)
	}
	return all
}

// describe describes a stream. If its lock is held, which can last as long as a write, a client
// is attached.
func (st *stream) describe() seam.Stream {
	d := seam.Stream{Session: st.session.logID(), Name: st.name, IsStandalone: st.call == nil, Attached: true}
	if !st.mu.TryLock() {
		return d
	}
	defer st.mu.Unlock()
	d.Attached = st.out != nil
	if st.log != nil {
		d.Kept = st.session.caller.kept.size(st.log)
	}
	return d
}

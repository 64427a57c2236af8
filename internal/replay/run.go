// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package replay

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
)

// A Memory is what a handler remembers: answers and values of Once, by key.
type Memory struct {
	Answers map[string]Answer          `json:"answers,omitempty"`
	Once    map[string]json.RawMessage `json:"once,omitempty"`
}

// Add adds what other has to m.
func (m *Memory) Add(other Memory) {
	if m.Answers == nil {
		m.Answers = map[string]Answer{}
	}
	if m.Once == nil {
		m.Once = map[string]json.RawMessage{}
	}
	maps.Copy(m.Answers, other.Answers)
	maps.Copy(m.Once, other.Once)
}

// An Answer is the client's answer to a question, with the digest of the question.
type Answer struct {
	Question string          `json:"q"`
	Answer   json.RawMessage `json:"a"`
}

// A KeepFunc keeps what the handler remembers, with a new value of Once. It returns before
// the handler goes on.
type KeepFunc func(ctx context.Context, m Memory) error

// A Run is one run of a handler. It begins kept, with the memory of earlier runs, or as a
// request whose memory the client holds, and can become kept while it goes on. A nil Run is
// never kept. It is safe for concurrent use.
type Run struct {
	mu        sync.Mutex
	keep      KeepFunc      // nil until the run is kept
	deciding  chan struct{} // closed when it is decided whether the run is kept; nil if nothing is to decide
	memory    *Memory       // with which the run begins; nil means that the request has it
	handler   any           // the first that asked; handlers that it calls have memories of their own
	snapshot  func() Memory // of what the handler remembers now; nil until it asks
	suspended bool          // the client has been asked, and holds the memory
	asked     map[string]string
}

// Resume returns a run that is kept from its beginning. If m is nil, the request has what
// the handler remembers.
func Resume(m *Memory, keep KeepFunc) *Run { return &Run{memory: m, keep: keep} }

type contextKey struct{}

// NewContext returns a context in which the handler's run is r.
func NewContext(ctx context.Context, r *Run) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// FromContext returns the run of ctx, nil if it has none.
func FromContext(ctx context.Context) *Run {
	r, _ := ctx.Value(contextKey{}).(*Run)
	return r
}

// Offer returns what the handler remembers so far, to one who may keep it, and who then
// calls Decide. Until then the handler waits where it would remember more or ask. M is nil
// if the request has what the handler remembers. Ok is false if the handler waits for the
// client, which holds its memory; then there is nothing to decide.
func (r *Run) Offer() (m *Memory, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspended {
		return nil, false
	}
	r.deciding = make(chan struct{})
	if r.snapshot != nil {
		now := r.snapshot()
		m = &now
	}
	return m, true
}

// Decide ends an offer. The run is kept with keep, or not if that is nil.
func (r *Run) Decide(keep KeepFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep = keep
	close(r.deciding)
	r.deciding = nil
}

// lockDecided locks the run when nothing is to decide.
func (r *Run) lockDecided() {
	for {
		r.mu.Lock()
		deciding := r.deciding
		if deciding == nil {
			return
		}
		r.mu.Unlock()
		<-deciding
	}
}

// Begin is called when a handler first asks or remembers, possibly several times. It returns
// false for another handler than the first, which is not part of the run. M is the memory to
// begin with, nil if the request has it. Snapshot must be callable until the run has ended.
func (r *Run) Begin(handler any, snapshot func() Memory) (m *Memory, ok bool) {
	if r == nil {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handler != nil && r.handler != handler {
		return nil, false
	}
	r.handler, r.snapshot = handler, snapshot
	return r.memory, true
}

// Keep has what the handler remembers kept, if the run is.
func (r *Run) Keep(ctx context.Context) error {
	if r == nil {
		return nil
	}
	r.lockDecided()
	keep, snapshot := r.keep, r.snapshot
	r.mu.Unlock()
	if keep == nil {
		return nil
	}
	return keep(ctx, snapshot())
}

// Store has a value of Once remembered, and kept if the run is.
func (r *Run) Store(ctx context.Context, key string, value json.RawMessage, remember func()) error {
	if r == nil {
		remember()
		return nil
	}
	r.lockDecided()
	keep, snapshot := r.keep, r.snapshot
	if keep == nil {
		defer r.mu.Unlock()
		remember() // with the lock: Offer takes a snapshot before or after it
		return nil
	}
	r.mu.Unlock()
	m := snapshot()
	m.Add(Memory{Once: map[string]json.RawMessage{key: value}})
	if err := keep(ctx, m); err != nil {
		return err
	}
	remember()
	return nil
}

// Suspend is called when the handler waits for answers to the questions with the digests,
// by key. It reports whether the run is kept; otherwise the client holds the memory.
func (r *Run) Suspend(asked map[string]string) (kept bool) {
	if r == nil {
		return false
	}
	r.lockDecided()
	defer r.mu.Unlock()
	r.asked, r.suspended = asked, r.keep == nil
	return r.keep != nil
}

// Asked returns the digests of the questions that the handler waits for, and what it
// remembers.
func (r *Run) Asked() (digests map[string]string, m Memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.snapshot != nil:
		m = r.snapshot()
	case r.memory != nil:
		m = *r.memory
	}
	return r.asked, m
}

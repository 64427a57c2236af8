// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package replay

import (
	"context"
	"encoding/json"
	"sync"
)

// A Memory is what a handler remembers: answers and values of Once, by key.
type Memory struct {
	Answers map[string]Answer          `json:"answers,omitempty"`
	Once    map[string]json.RawMessage `json:"once,omitempty"`
}

// An Answer is the client's answer to a question, with the digest of the question.
type Answer struct {
	Question string          `json:"q"`
	Answer   json.RawMessage `json:"a"`
}

// A KeepFunc keeps a value of Once. It returns before the handler goes on.
type KeepFunc func(ctx context.Context, key string, value json.RawMessage) error

// A Run is one run of a handler. It begins kept, with the memory of earlier runs, or as a
// request whose memory the client holds, and can become kept while it goes on. A nil Run is
// never kept. It is safe for concurrent use.
type Run struct {
	mu        sync.Mutex
	keep      KeepFunc      // nil until the run is kept
	memory    Memory        // with which a kept run begins
	handler   any           // the first that asked; handlers that it calls have memories of their own
	snapshot  func() Memory // of what the handler remembers now; nil until it asks
	suspended bool          // the client has been asked, and holds the memory
	asked     map[string]string
}

// Resume returns a run that is kept from its beginning.
func Resume(m Memory, keep KeepFunc) *Run { return &Run{memory: m, keep: keep} }

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

// Keep makes the run a kept one, and returns what the handler remembers so far. It returns
// false if the handler waits for the client, which holds its memory.
func (r *Run) Keep(keep KeepFunc) (m Memory, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspended {
		return Memory{}, false
	}
	r.keep = keep
	if r.snapshot != nil {
		m = r.snapshot()
	}
	return m, true
}

// Begin is called when a handler first asks or remembers, possibly several times. It returns
// false for another handler than the first, which is not part of the run. If the run is
// kept, m is the memory to begin with, otherwise nil. Snapshot must be callable until the
// run has ended.
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
	if r.keep == nil {
		return nil, true
	}
	return &r.memory, true
}

// Store has a value of Once remembered, and kept if the run is.
func (r *Run) Store(ctx context.Context, key string, value json.RawMessage, remember func()) error {
	if r == nil {
		remember()
		return nil
	}
	r.mu.Lock()
	if r.keep == nil {
		defer r.mu.Unlock()
		remember() // with the lock: Keep takes a snapshot before or after it
		return nil
	}
	keep := r.keep
	r.mu.Unlock()
	if err := keep(ctx, key, value); err != nil {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.suspended = asked, r.keep == nil
	return r.keep != nil
}

// Asked returns the digests of the questions that the handler waits for.
func (r *Run) Asked() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// Release makes the run one that is not kept again.
func (r *Run) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep = nil
}

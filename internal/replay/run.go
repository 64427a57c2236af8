// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package replay

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
)

// A Memory is what a handler remembers: answers, and values of Once, by key.
type Memory struct {
	Answers map[string]Answer          `json:"answers,omitempty"`
	Once    map[string]json.RawMessage `json:"once,omitempty"`
}

// Add adds the contents of other to m.
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

// A KeepFunc stores what the handler remembers, including a new value of Once. The handler
// waits for it to return.
type KeepFunc func(ctx context.Context, m Memory) error

// A Run is one run of a handler. It is either kept from the start, with the memory of
// earlier runs, or it is a request whose memory the client holds, which can become kept
// during the run. A nil Run is never kept. It is safe for concurrent use.
type Run struct {
	mu        sync.Mutex
	keep      KeepFunc      // nil until the run is kept
	deciding  chan struct{} // closed by Decide; nil if no decision is pending
	memory    *Memory       // at the start of the run; nil means that the request has it
	handler   any           // the first to ask; handlers that it calls have their own memory
	snapshot  func() Memory // returns the current memory; nil until the handler asks
	suspended bool          // the client has been asked, and holds the memory
	asked     map[string]string
}

// Resume returns a run that is kept from the start. If m is nil, the request has the memory
// of the handler.
func Resume(m *Memory, keep KeepFunc) *Run { return &Run{memory: m, keep: keep} }

type contextKey struct{}

// NewContext returns a context that carries r as the run of the handler.
func NewContext(ctx context.Context, r *Run) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// FromContext returns the run of ctx, or nil if it has none.
func FromContext(ctx context.Context) *Run {
	r, _ := ctx.Value(contextKey{}).(*Run)
	return r
}

// Offer returns what the handler remembers so far to a caller that may keep it, and that
// must then call Decide. Until then, the handler blocks before it remembers more or asks. m
// is nil if the request has the memory. ok is false if the handler is waiting for the
// client, which holds the memory; then there is nothing to decide.
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

// Decide ends an offer. The run is kept with keep, or not kept if keep is nil.
func (r *Run) Decide(keep KeepFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep = keep
	close(r.deciding)
	r.deciding = nil
}

// lockDecided locks the run when no decision is pending.
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

// Begin is called when a handler first asks or remembers, possibly several times. It
// returns false for any handler other than the first, which is not part of the run. m is
// the initial memory, or nil if the request has it. snapshot must be callable until the run
// has ended.
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

// Keep stores what the handler remembers, if the run is kept.
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

// Store calls remember for a value of Once. If the run is kept, it stores the value first.
func (r *Run) Store(ctx context.Context, key string, value json.RawMessage, remember func()) error {
	if r == nil {
		remember()
		return nil
	}
	r.lockDecided()
	keep, snapshot := r.keep, r.snapshot
	if keep == nil {
		defer r.mu.Unlock()
		remember() // with the lock, so that Offer takes a snapshot before or after it
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

// Suspend is called when the handler starts to wait for answers. asked holds the digests of
// the questions by key. Suspend reports whether the run is kept; otherwise the client holds
// the memory.
func (r *Run) Suspend(asked map[string]string) (kept bool) {
	if r == nil {
		return false
	}
	r.lockDecided()
	defer r.mu.Unlock()
	r.asked, r.suspended = asked, r.keep == nil
	return r.keep != nil
}

// Asked returns the digests of the questions that the handler is waiting for, and what the
// handler remembers.
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package inflight

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp/transport"
)

// A Caller identifies the caller of a call. The zero Caller is unknown: a program, or an
// unauthenticated client without a session. It is not considered equal to any other caller,
// nor to itself.
type Caller struct {
	Issuer, Subject string
	Session         any // comparable
}

type callerKey struct{}

// NewContext returns a context for the calls of a caller.
func NewContext(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFromContext returns the caller of the context, or the zero Caller if it has none.
func CallerFromContext(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Calls are the calls in flight on one connection, each with a value of the connection's
// choice. A message that names no call is attributed to a call only if it cannot belong to
// another caller. The zero Calls is empty and ready to use.
type Calls[V any] struct {
	mu        sync.Mutex
	calls     map[transport.ID]call[V]
	abandoned map[Caller]time.Time // callers of abandoned calls, and when to forget them
}

type call[V any] struct {
	caller Caller
	value  V
	parked bool // it waits for answers of its caller
}

// AbandonedTime is how long the caller of an abandoned call is remembered. Nothing shows when
// a server has noticed that a call was abandoned: transports do not report late responses,
// and a server that ignores cancellations could show one caller's question to another, even
// if it has answered something since.
const AbandonedTime = 10 * time.Minute

// maxAbandoned limits the callers that are remembered. Further callers are remembered
// together, as the unknown caller.
const maxAbandoned = 1024

// Add adds a call.
func (f *Calls[V]) Add(id transport.ID, c Caller, value V) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[transport.ID]call[V]{}
	}
	f.calls[id] = call[V]{caller: c, value: value}
}

// Get returns the value of a call, or the zero value if the call is not in flight.
func (f *Calls[V]) Get(id transport.ID) V {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[id].value
}

// Park records whether a call waits for its caller to answer a question. A message is then
// rather about another call of that caller.
func (f *Calls[V]) Park(id transport.ID, parked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.calls[id]; ok {
		c.parked = parked
		f.calls[id] = c
	}
}

// Remove removes a call that ended with err, which may be nil. If the server has not
// answered the call, it may still be working on it.
func (f *Calls[V]) Remove(id transport.ID, err error) {
	_, unreadable := errors.AsType[*transport.MessageError](err)
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.calls[id].caller
	delete(f.calls, id)
	if err == nil || unreadable {
		return
	}
	f.expireLocked()
	if _, known := f.abandoned[c]; !known && len(f.abandoned) >= maxAbandoned {
		c = Caller{}
	}
	if f.abandoned == nil {
		f.abandoned = map[Caller]time.Time{}
	}
	f.abandoned[c] = time.Now().Add(AbandonedTime)
}

func (f *Calls[V]) expireLocked() {
	now := time.Now()
	for c, until := range f.abandoned {
		if now.After(until) {
			delete(f.abandoned, c)
		}
	}
}

// Reasons why a message cannot be attributed to a call.
var (
	errNoCall       = errors.New("no call is under way")
	errSeveralCalls = errors.New("several calls are under way, and it names none of them")
	errOthersParked = errors.New("it may be about a call of another caller, who has been asked and has not answered")
	errOthersCall   = errors.New("it may be about a call that another caller has given up")
)

// Attribute returns the call that a message belongs to: the call about, on whose stream it
// arrived, or, if about is zero, the only call that it can belong to.
func (f *Calls[V]) Attribute(about transport.ID) (transport.ID, error) {
	if !about.IsZero() {
		return about, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expireLocked()
	id, err := f.onlyLocked()
	if err != nil {
		return transport.ID{}, err
	}
	c := f.calls[id].caller
	for other := range f.abandoned {
		if other != c || c == (Caller{}) {
			return transport.ID{}, errOthersCall
		}
	}
	return id, nil
}

// onlyLocked returns the only call, not counting the parked calls of the same caller.
func (f *Calls[V]) onlyLocked() (only transport.ID, err error) {
	var active, parked []transport.ID
	for id, c := range f.calls {
		if c.parked {
			parked = append(parked, id)
		} else {
			active = append(active, id)
		}
	}
	switch {
	case len(f.calls) == 0:
		return transport.ID{}, errNoCall
	case len(f.calls) == 1:
		return append(active, parked...)[0], nil
	case len(active) != 1:
		return transport.ID{}, errSeveralCalls
	}
	c := f.calls[active[0]].caller
	for _, id := range parked {
		if f.calls[id].caller != c || c == (Caller{}) {
			return transport.ID{}, errOthersParked
		}
	}
	return active[0], nil
}

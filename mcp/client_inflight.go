// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"errors"
	"sync"
	"time"
)

// callsInFlight are the calls that a server may be working on. On a stream that does not
// name the call a message is about, they decide whose message it is: a message belongs to
// a call only if it can belong to no other caller's.
type callsInFlight struct {
	mu        sync.Mutex
	calls     map[ID]callOwner
	abandoned map[callOwner]time.Time // callers that gave up a call that the server may still work on, until when
}

// A callOwner identifies the caller of a call. The zero callOwner is unknown: a program, or an
// unauthenticated client without a session. It is not considered equal to any other caller,
// nor to itself.
type callOwner struct {
	issuer, subject string
	session         *Session
}

func callOwnerOf(req *Request) callOwner {
	switch p := req.Principal; {
	case p != nil && (p.Issuer != "" || p.Subject != ""):
		return callOwner{issuer: p.Issuer, subject: p.Subject}
	case req.sharedCall().session != nil:
		return callOwner{session: req.sharedCall().session}
	}
	return callOwner{}
}

// Bounds on abandoned calls: how long they are remembered, and of how many callers. Further
// callers are remembered together, as the unknown caller.
const (
	abandonedTime = pendingTime
	maxAbandoned  = 1024
)

func (f *callsInFlight) add(id ID, req *Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[ID]callOwner{}
	}
	f.calls[id] = callOwnerOf(req)
}

// remove removes a call. If it was not answered, the server may still be working on it.
func (f *callsInFlight) remove(id ID, answered bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.calls[id]
	delete(f.calls, id)
	if answered {
		return
	}
	f.expireLocked()
	if _, known := f.abandoned[c]; !known && len(f.abandoned) >= maxAbandoned {
		c = callOwner{}
	}
	if f.abandoned == nil {
		f.abandoned = map[callOwner]time.Time{}
	}
	f.abandoned[c] = time.Now().Add(abandonedTime)
}

func (f *callsInFlight) expireLocked() {
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
	errOthersCall   = errors.New("it may be about a call that another caller has given up")
)

// attribute returns the call that a message is about: the call on whose stream it came, or
// if that is not known, the only call that it can be about.
func (f *callsInFlight) attribute(about ID) (ID, error) {
	if !about.IsZero() {
		return about, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expireLocked()
	switch {
	case len(f.calls) == 0:
		return ID{}, errNoCall
	case len(f.calls) > 1:
		return ID{}, errSeveralCalls
	}
	var id ID
	var c callOwner
	for id, c = range f.calls {
	}
	for other := range f.abandoned {
		if other != c || c == (callOwner{}) {
			return ID{}, errOthersCall
		}
	}
	return id, nil
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"errors"
	"sync"
	"time"
)

// underWay are the calls that a server may be at work on. What it says on a stream that
// does not name a call is told apart by them: it belongs to a call, and a caller, only
// if there is no other that it could belong to.
type underWay struct {
	mu    sync.Mutex
	calls map[ID]owner
	left  map[owner]time.Time // those who gave up a call that the server may still be at, and until when that counts
}

// owner is whom a call is made for. The zero owner is not known to be the same as
// any other, itself included: a program, or somebody who was not authenticated and has
// no session.
type owner struct {
	issuer, subject string
	session         *Session
}

func ownerOf(req *Request) owner {
	switch p := req.Principal; {
	case p != nil && (p.Issuer != "" || p.Subject != ""):
		return owner{issuer: p.Issuer, subject: p.Subject}
	case req.call.session != nil:
		return owner{session: req.call.session}
	}
	return owner{}
}

// Bounds on what is remembered of calls that were given up: for how long, and of how
// many callers; those beyond are remembered together.
const (
	leftTime = pendingTime
	maxLeft  = 1024
)

// begin enters a call.
func (u *underWay) begin(id ID, req *Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls == nil {
		u.calls = map[ID]owner{}
	}
	u.calls[id] = ownerOf(req)
}

// end removes a call. One that the server has not answered may still be served there.
func (u *underWay) end(id ID, answered bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	who := u.calls[id]
	delete(u.calls, id)
	if answered {
		return
	}
	u.expireLocked()
	if _, known := u.left[who]; !known && len(u.left) >= maxLeft {
		who = owner{}
	}
	if u.left == nil {
		u.left = map[owner]time.Time{}
	}
	u.left[who] = time.Now().Add(leftTime)
}

func (u *underWay) expireLocked() {
	now := time.Now()
	for who, until := range u.left {
		if now.After(until) {
			delete(u.left, who)
		}
	}
}

// Why something that a server said belongs to nobody.
var (
	errNoCall       = errors.New("no call is under way")
	errSeveralCalls = errors.New("several calls are under way, and it names none of them")
	errOthersCall   = errors.New("it may be about a call that another caller has given up")
)

// only returns the call that a message is about: the one on whose stream it came, or,
// where streams do not tell, the only one that it can be about.
func (u *underWay) only(about ID) (ID, error) {
	if !about.IsZero() {
		return about, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expireLocked()
	switch len(u.calls) {
	case 0:
		return ID{}, errNoCall
	case 1:
	default:
		return ID{}, errSeveralCalls
	}
	for id, who := range u.calls {
		for other := range u.left {
			if other != who || who == (owner{}) {
				return ID{}, errOthersCall
			}
		}
		return id, nil
	}
	return ID{}, errNoCall
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// A beater is a response that is kept alive. Beat sends data that the client ignores.
type beater interface{ Beat() }

// An inFlight is an entry in the list of what an endpoint serves. Its owner sets cancel and
// response, adds it, and removes it when done.
type inFlight struct {
	cancel   context.CancelCauseFunc // called by Kill; may be nil
	response beater                  // kept alive; may be nil

	due        time.Time  // of the next heartbeat
	prev, next *inFlight  // in the list; guarded by inFlightList.mu
	isListed   bool       // guarded by inFlightList.mu
	beating    sync.Mutex // held while Beat is called; guards response once it is listed
}

// An inFlightList keeps responses alive and cancels what is still served when the endpoint is
// killed. All responses have the same interval, so the order in which they were added is the
// order in which heartbeats are due, and one timer for the first of them is enough: a call
// that ends soon, as nearly all do, arms none. Entries are part of the objects of their
// requests, and adding one allocates nothing.
type inFlightList struct {
	interval time.Duration // of heartbeats; there are none if it is not positive
	beat     func(beater) (ok bool)

	mu          sync.Mutex // acquired before no other lock
	first, last *inFlight
	timer       *time.Timer // nil before the first entry
	isArmed     bool
	isKilled    bool
}

// add adds an entry. It cancels the entry if kill has been called.
func (l *inFlightList) add(f *inFlight) {
	l.mu.Lock()
	isKilled := l.isKilled
	f.isListed = true
	l.appendLocked(f, time.Now())
	l.armLocked(l.interval)
	l.mu.Unlock()
	if isKilled && f.cancel != nil {
		f.cancel(mcp.ErrClosed)
	}
}

// remove removes an entry, if it is listed, and waits for a call of its Beat to return. The
// caller must not hold a lock that Beat acquires.
func (l *inFlightList) remove(f *inFlight) {
	l.mu.Lock()
	wasListed := f.isListed
	if wasListed {
		l.unlinkLocked(f)
		f.isListed = false
	}
	l.mu.Unlock()
	if wasListed {
		f.beating.Lock()
		defer f.beating.Unlock()
		f.response = nil
	}
}

// kill cancels all entries, and those that are added from now on.
func (l *inFlightList) kill() {
	l.mu.Lock()
	l.isKilled = true
	var cancels []context.CancelCauseFunc
	for f := l.first; f != nil; f = f.next {
		if f.cancel != nil {
			cancels = append(cancels, f.cancel)
		}
	}
	l.mu.Unlock()
	for _, cancel := range cancels {
		cancel(mcp.ErrClosed)
	}
}

// fire sends the heartbeats that are due. Each is sent in a goroutine of its own, so that a
// client that does not read delays no other client.
func (l *inFlightList) fire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for f := l.first; f != nil && !f.due.After(now); f = l.first {
		l.unlinkLocked(f)
		l.appendLocked(f, now)
		go l.beatOnce(f)
	}
	l.isArmed = false
	if l.first != nil {
		l.armLocked(l.first.due.Sub(now))
	}
}

// beatOnce sends a heartbeat, unless the one before is still being sent. After a panic of the
// response writer, it sends no more.
func (l *inFlightList) beatOnce(f *inFlight) {
	if !f.beating.TryLock() {
		return
	}
	defer f.beating.Unlock()
	if f.response != nil && !l.beat(f.response) {
		f.response = nil
	}
}

func (l *inFlightList) armLocked(d time.Duration) {
	switch {
	case l.isArmed || l.interval <= 0:
		return
	case l.timer == nil:
		l.timer = time.AfterFunc(d, l.fire)
	default:
		l.timer.Reset(d)
	}
	l.isArmed = true
}

func (l *inFlightList) appendLocked(f *inFlight, now time.Time) {
	f.due, f.prev, f.next = now.Add(l.interval), l.last, nil
	if l.last == nil {
		l.first = f
	} else {
		l.last.next = f
	}
	l.last = f
}

func (l *inFlightList) unlinkLocked(f *inFlight) {
	if f.prev == nil {
		l.first = f.next
	} else {
		f.prev.next = f.next
	}
	if f.next == nil {
		l.last = f.prev
	} else {
		f.next.prev = f.prev
	}
	f.prev, f.next = nil, nil
}

// beatNow calls Beat in a separate goroutine and waits for it. The stack that net/http
// needs to send a response header is freed with that goroutine, whereas the goroutine of
// the request may wait for a long time.
func (e *endpoint) beatNow(response beater) {
	var sending sync.WaitGroup
	sending.Go(func() { e.beat(response) })
	sending.Wait()
}

// beat calls Beat outside the goroutine of the request, where a panic of the response
// writer, which may belong to middleware, would end the process. It recovers from a panic
// and returns false.
func (e *endpoint) beat(response beater) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			e.Logger.Error("mcphttp: the response writer panicked when a heartbeat was sent", "panic", fmt.Sprint(v))
		}
	}()
	response.Beat()
	return true
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"strings"
	"sync"
	"time"
)

// hub passes changes to listeners. Publishing never waits for a listener: each keeps a
// bounded set of changes that it has not sent yet.
type hub struct {
	interval  time.Duration // between two announcements of a change of one list
	perCaller int           // listeners of one authenticated caller

	mu        sync.Mutex // locked before that of a listener
	listeners map[*listener]struct{}
	callers   map[caller]int // listeners of each authenticated caller
	throttles [len(changeTable)]throttle
}

// throttle limits how often the changes of one list are announced.
type throttle struct {
	last      time.Time
	scheduled bool // the next announcement is due at the end of the interval
}

func newHub(interval time.Duration, perCaller int) *hub {
	return &hub{interval: interval, perCaller: perCaller, listeners: map[*listener]struct{}{}, callers: map[caller]int{}}
}

// caller identifies an authenticated caller. It is zero for all others.
type caller struct{ issuer, subject string }

func callerOf(p *Principal) caller {
	if p == nil {
		return caller{}
	}
	return caller{p.Issuer, p.Subject}
}

// maxListeners is the default limit of open subscriptions of one authenticated caller.
const maxListeners = 1000

// add adds a listener. It fails if its caller is authenticated and has too many.
func (h *hub) add(l *listener) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.caller != (caller{}) {
		if h.callers[l.caller] >= h.perCaller {
			return RateLimited(time.Minute, "the caller has %d subscriptions open, which is the limit", h.perCaller)
		}
		h.callers[l.caller]++
	}
	h.listeners[l] = struct{}{}
	return nil
}

func (h *hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
	if h.callers[l.caller]--; h.callers[l.caller] <= 0 {
		delete(h.callers, l.caller)
	}
}

// publishLists announces that lists have changed: at once if the last announcement was
// an interval ago, otherwise at the end of the interval, together with other changes.
func (h *hub) publishLists(kinds changeKinds) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.listeners) == 0 {
		return
	}
	for i, list := range changeTable {
		if kinds&list.kind != 0 {
			h.scheduleLocked(list.kind, &h.throttles[i])
		}
	}
}

func (h *hub) scheduleLocked(list changeKinds, t *throttle) {
	if t.scheduled {
		return
	}
	announce := func() {
		t.last, t.scheduled = time.Now(), false
		for l := range h.listeners {
			l.addKinds(list)
		}
	}
	wait := h.interval - time.Since(t.last)
	if wait <= 0 {
		announce()
		return
	}
	t.scheduled = true
	time.AfterFunc(wait, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		announce()
	})
}

// publishUpdate announces that a resource was updated.
func (h *hub) publishUpdate(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		l.addUpdate(uri)
	}
}

// publishMounts tells the listeners of a mux that it has other mounts.
func (h *hub) publishMounts() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		l.addKinds(mountsChanged)
	}
}

// maxUpdates bounds the updates that wait to be sent to a listener. Beyond it, the
// subscribed URI stands for those below it.
const maxUpdates = 1024

// listener collects the changes that one subscription covers until they are sent.
type listener struct {
	caller      caller
	kinds       changeKinds
	uris        map[string]struct{} // subscribed
	directories bool                // some of uris cover what is below them
	wake        chan struct{}       // receives when there are changes to drain; has one place

	mu      sync.Mutex
	pending changeSet
}

func newListener(p *Principal, f *SubscriptionFilter) *listener {
	l := &listener{caller: callerOf(p), kinds: mountsChanged | f.lists(), uris: everythingIn(f).uris, wake: make(chan struct{}, 1)}
	for uri := range l.uris {
		l.directories = l.directories || strings.HasSuffix(uri, "/")
	}
	return l
}

func (l *listener) addKinds(kinds changeKinds) {
	if kinds &= l.kinds; kinds == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending.kinds |= kinds
	l.signal()
}

func (l *listener) addUpdate(uri string) {
	subscribed, ok := l.covering(uri)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending.uris) >= maxUpdates {
		uri = subscribed
	}
	l.pending.addURI(uri)
	l.signal()
}

// covering returns the subscribed URI that covers uri: uri itself, or a directory above
// it. Its cost does not depend on the number of subscribed URIs, because publishing
// calls it for every listener.
func (l *listener) covering(uri string) (subscribed string, ok bool) {
	if _, ok := l.uris[uri]; ok {
		return uri, true
	}
	for end := 0; l.directories && end < len(uri); end++ {
		if uri[end] != '/' {
			continue
		}
		if _, ok := l.uris[uri[:end+1]]; ok {
			return uri[:end+1], true
		}
	}
	return "", false
}

func (l *listener) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// drain returns the changes that wait, and removes them.
func (l *listener) drain() changeSet {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.pending
	l.pending = changeSet{}
	return s
}

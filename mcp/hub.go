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
	callers   map[caller]int       // listeners of each authenticated caller
	announced map[Change]time.Time // when the change of a list was announced last
	scheduled map[Change]bool      // the next announcement is due at the end of the interval
}

func newHub(interval time.Duration, perCaller int) *hub {
	return &hub{
		interval: interval, perCaller: perCaller,
		listeners: map[*listener]struct{}{}, callers: map[caller]int{},
		announced: map[Change]time.Time{}, scheduled: map[Change]bool{},
	}
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

// maxSubscriptions is the default limit of the resources that one subscription names.
const maxSubscriptions = 1000

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

// publish announces a change, unless it is zero. If a list changes again within the
// interval, that is announced once, at the end of the interval.
func (h *hub) publish(c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publishLocked(c)
}

// publishMounts announces that a mux has other mounts: its listeners must listen to
// them, and all lists have changed.
func (h *hub) publishMounts() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		wake(l.remounted)
	}
	for _, list := range changeLists {
		h.publishLocked(list.change)
	}
}

func (h *hub) publishLocked(c Change) {
	switch {
	case c.Method == NotificationResourceUpdated:
		h.announceLocked(c)
		return
	case c == (Change{}), len(h.listeners) == 0, h.scheduled[c]:
		return
	}
	wait := h.interval - time.Since(h.announced[c])
	if wait <= 0 {
		h.announceLocked(c)
		return
	}
	h.scheduled[c] = true
	time.AfterFunc(wait, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.announceLocked(c)
	})
}

func (h *hub) announceLocked(c Change) {
	if c.Method != NotificationResourceUpdated {
		h.announced[c], h.scheduled[c] = time.Now(), false
	}
	for l := range h.listeners {
		l.add(c)
	}
}

// maxUpdates bounds the changes that wait to be sent to a listener. Beyond it, the
// subscribed URI stands for those below it.
const maxUpdates = 1024

// listener collects the changes that one subscription covers until they are sent.
type listener struct {
	caller      caller
	covered     changeSet
	directories bool          // some of the subscribed URIs cover what is below them
	wake        chan struct{} // receives when there are changes to drain
	remounted   chan struct{} // receives when there are other mounts

	mu      sync.Mutex
	pending changeSet
}

func newListener(p *Principal, f *SubscriptionFilter) *listener {
	l := &listener{caller: callerOf(p), covered: everythingIn(f), wake: make(chan struct{}, 1), remounted: make(chan struct{}, 1)}
	for _, uri := range f.ResourceSubscriptions {
		l.directories = l.directories || strings.HasSuffix(uri, "/")
	}
	return l
}

func (l *listener) add(c Change) {
	covering, ok := l.covering(c)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) >= maxUpdates {
		c = covering
	}
	l.pending.add(c)
	wake(l.wake)
}

// covering returns the change subscribed to that covers c: c itself, or that of a
// directory above it. Its cost does not depend on the number of subscribed URIs, because
// publishing calls it for every listener.
func (l *listener) covering(c Change) (covering Change, ok bool) {
	if l.covered.has(c) {
		return c, true
	}
	for end := 0; l.directories && end < len(c.URI); end++ {
		if c.URI[end] != '/' {
			continue
		}
		if directory := (Change{c.Method, c.URI[:end+1]}); l.covered.has(directory) {
			return directory, true
		}
	}
	return Change{}, false
}

// drain returns the changes that wait, and removes them.
func (l *listener) drain() changeSet {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.pending
	l.pending = nil
	return s
}

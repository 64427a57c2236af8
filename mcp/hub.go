// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// change is a set of things that changed.
type change uint8

const (
	toolsChanged change = 1 << iota
	promptsChanged
	resourcesChanged
	mountsChanged // not announced: listeners listen to other mounts

	listChanges = 3 // kinds of lists
)

// hub tells listeners what changed. Publishing never waits: every listener keeps
// a set of what it has not said yet, which cannot grow beyond what there is to
// say, and says it in its own time.
type hub struct {
	interval time.Duration
	most     int // listeners of one authenticated caller

	mu        sync.Mutex
	listeners map[*listener]struct{}
	callers   map[caller]int // how many of the listeners are of one authenticated caller
	last      [listChanges]time.Time
	waiting   [listChanges]bool // an announcement is due at the end of the interval
}

func newHub(interval time.Duration, most int) *hub {
	return &hub{interval: interval, most: most, listeners: map[*listener]struct{}{}, callers: map[caller]int{}}
}

// caller identifies an authenticated caller. It is zero for all others.
type caller struct{ issuer, subject string }

func callerOf(p *Principal) caller {
	if p == nil {
		return caller{}
	}
	return caller{p.Issuer, p.Subject}
}

// maxListeners is how many subscriptions one authenticated caller may have open if
// nothing else is said.
const maxListeners = 1000

// add refuses a listener whose caller is authenticated and has too many.
func (h *hub) add(l *listener) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.caller != (caller{}) {
		if h.callers[l.caller] >= h.most {
			return RateLimited(time.Minute, "the caller has %d subscriptions open, which is the limit", h.most)
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

// changed announces a change to a list: at once if the last one was long enough
// ago, otherwise together with all others until then.
func (h *hub) changed(c change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := indexOf(c)
	if len(h.listeners) == 0 || h.waiting[i] {
		return
	}
	since := time.Since(h.last[i])
	if since >= h.interval {
		h.announceLocked(c)
		return
	}
	h.waiting[i] = true
	time.AfterFunc(h.interval-since, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.waiting[i] = false
		h.announceLocked(c)
	})
}

func indexOf(c change) int {
	switch c {
	case toolsChanged:
		return 0
	case promptsChanged:
		return 1
	default:
		return 2
	}
}

func (h *hub) announceLocked(c change) {
	h.last[indexOf(c)] = time.Now()
	for l := range h.listeners {
		l.mark(c)
	}
}

func (h *hub) updated(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		l.markUpdated(uri)
	}
}

func (h *hub) remount() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		l.mark(mountsChanged)
	}
}

// maxUpdates bounds the updates that a listener has not said yet; beyond it, the
// URI that was subscribed to stands for those below it.
const maxUpdates = 1024

// listener is one subscription.
type listener struct {
	caller      caller
	wants       change
	uris        map[string]struct{} // subscribed
	directories bool                // some of uris cover what is below them
	wake        chan struct{}       // of one place: something is marked

	mu      sync.Mutex
	pending change
	updates map[string]struct{}
}

// init makes a new listener one of a caller.
func (l *listener) init(p *Principal, f *SubscriptionFilter) {
	l.caller, l.wants, l.wake = callerOf(p), mountsChanged|f.changes(), make(chan struct{}, 1)
	if len(f.ResourceSubscriptions) > 0 {
		l.uris = make(map[string]struct{}, len(f.ResourceSubscriptions))
	}
	for _, uri := range f.ResourceSubscriptions {
		l.uris[uri] = struct{}{}
		l.directories = l.directories || strings.HasSuffix(uri, "/")
	}
}

// changes are those of lists that are asked for.
func (f *SubscriptionFilter) changes() (c change) {
	if f.ToolsListChanged {
		c |= toolsChanged
	}
	if f.PromptsListChanged {
		c |= promptsChanged
	}
	if f.ResourcesListChanged {
		c |= resourcesChanged
	}
	return c
}

func (l *listener) mark(c change) {
	if c &= l.wants; c == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending |= c
	l.signal()
}

func (l *listener) markUpdated(uri string) {
	subscribed, ok := l.covering(uri)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.updates == nil {
		l.updates = map[string]struct{}{}
	}
	if len(l.updates) >= maxUpdates {
		uri = subscribed
	}
	l.updates[uri] = struct{}{}
	l.signal()
}

// covering returns what was subscribed to that an update of uri is one of: the resource
// itself, or a directory above it. What it costs does not depend on how many URIs were
// subscribed to, for whoever updates a resource waits for it.
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

// take empties what is marked.
func (l *listener) take() (change, []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, updates := l.pending, l.updates
	l.pending, l.updates = 0, nil
	if len(updates) == 0 {
		return c, nil
	}
	return c, slices.Sorted(maps.Keys(updates))
}

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

	mu        sync.Mutex
	listeners map[*listener]struct{}
	last      [listChanges]time.Time
	waiting   [listChanges]bool // an announcement is due at the end of the interval
}

func newHub(interval time.Duration) *hub {
	return &hub{interval: interval, listeners: map[*listener]struct{}{}}
}

func (h *hub) add(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[l] = struct{}{}
}

func (h *hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
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
	wants change
	uris  []string      // subscribed
	wake  chan struct{} // of one place: something is marked

	mu      sync.Mutex
	pending change
	updates map[string]struct{}
}

func newListener(f *SubscriptionFilter) listener {
	return listener{wants: mountsChanged | f.changes(), uris: f.ResourceSubscriptions, wake: make(chan struct{}, 1)}
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
	i := slices.IndexFunc(l.uris, func(subscribed string) bool { return covers(subscribed, uri) })
	if i < 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.updates == nil {
		l.updates = map[string]struct{}{}
	}
	if len(l.updates) >= maxUpdates {
		uri = l.uris[i]
	}
	l.updates[uri] = struct{}{}
	l.signal()
}

// covers reports whether an update of uri is one of the subscribed resource: the
// same, or below it.
func covers(subscribed, uri string) bool {
	return uri == subscribed || strings.HasSuffix(subscribed, "/") && strings.HasPrefix(uri, subscribed)
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

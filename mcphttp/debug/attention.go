// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/async"
)

// linger is how long the server is observed after the last request for the page.
const linger = 2 * time.Minute

// attention observes the server while the page is in use.
type attention struct {
	start func() (stop func())

	mu       sync.Mutex
	stop     func() // nil while not observing
	since    time.Time
	timer    *time.Timer // stops observing; nil before the first observation
	watchers map[*watcher]struct{}
	forever  bool
}

// A watcher collects the events for a page that is updated live.
type watcher = async.Set[string]

// maxEvents is more than there are.
const maxEvents = 16

func (a *attention) init(start func() (stop func())) {
	a.start, a.watchers = start, map[*watcher]struct{}{}
}

// extend observes the server for at least linger from now on.
func (a *attention) extend() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.extendLocked()
}

func (a *attention) extendLocked() {
	if a.stop == nil {
		a.stop, a.since = a.start(), time.Now()
		a.timer = time.AfterFunc(linger, a.stopIfIdle)
		return
	}
	a.timer.Reset(linger)
}

// stopIfIdle stops observing, unless there are watchers.
func (a *attention) stopIfIdle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.forever || a.stop == nil:
	case len(a.watchers) > 0:
		a.timer.Reset(linger)
	default:
		a.stop()
		a.stop = nil
	}
}

// watch adds a watcher, which the caller must remove with removeWatcher. It returns false if
// there are too many.
func (a *attention) watch() (*watcher, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.watchers) >= maxWatchers {
		return nil, false
	}
	a.extendLocked()
	w := async.NewSet(maxEvents, math.MaxInt, strings.Compare, func(string) int { return 0 })
	a.watchers[w] = struct{}{}
	return w, true
}

func (a *attention) removeWatcher(w *watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.watchers, w)
	a.timer.Reset(linger)
}

// watchForever observes the server from now on.
func (a *attention) watchForever() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forever, a.stop, a.since = true, a.start(), time.Now()
	a.timer = time.AfterFunc(linger, a.stopIfIdle)
}

// observedSince returns when the current or last observation began.
func (a *attention) observedSince() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.since
}

// announce sends an event to all watchers.
func (a *attention) announce(event string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watchers {
		w.Add(event)
	}
}

// shutdowns ends the event streams of HTTP servers that shut down. Otherwise, Shutdown would wait
// for them.
type shutdowns struct {
	mu   sync.Mutex
	done map[*http.Server]chan struct{}
}

// maxServers is the maximum number of servers that are remembered. Streams of other servers last
// until the client disconnects.
const maxServers = 16

// channelFor returns a channel that is closed when the server of r shuts down, or nil if the
// server is unknown or there are too many.
func (s *shutdowns) channelFor(r *http.Request) <-chan struct{} {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if done := s.done[server]; done != nil || len(s.done) >= maxServers {
		return done
	}
	if s.done == nil {
		s.done = map[*http.Server]chan struct{}{}
	}
	done := make(chan struct{})
	s.done[server] = done
	server.RegisterOnShutdown(sync.OnceFunc(func() { close(done) }))
	return done
}

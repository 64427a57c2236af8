// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"os"
	"runtime"
)

// figures are the values that must return to their initial level after the load.
type figures struct {
	goroutines  int
	descriptors int // 0 if they cannot be counted
	heap        uint64
	sessions    int
	handlers    int
}

// measure collects garbage and returns the current figures.
func measure(s *server) figures {
	s.closeIdle()
	runtime.GC()
	runtime.GC() // pools need two collections
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return figures{runtime.NumGoroutine(), descriptors(), m.HeapAlloc, s.sessions(), int(s.handlers.Load())}
}

func descriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(open)
}

// moreHeap and moreHeapPerGoroutine limit the heap growth: maps do not shrink, and the
// runtime keeps a record of every goroutine of the peak.
const (
	moreHeap             = 8 << 20
	moreHeapPerGoroutine = 1 << 10
)

// isLikeBefore reports whether all figures are back at their level before the load.
func (r *report) isLikeBefore(now *figures) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	heap := r.before.heap + moreHeap + uint64(r.peak.goroutines)*moreHeapPerGoroutine
	return now.goroutines <= r.before.goroutines && now.descriptors <= r.before.descriptors &&
		now.heap <= heap && now.sessions == 0 && now.handlers == 0
}

// peak holds the maxima during the load.
type peak struct {
	goroutines, descriptors, sessions int
	heap, system                      uint64
}

func (p *peak) see(s *server) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p.goroutines = max(p.goroutines, runtime.NumGoroutine())
	p.descriptors = max(p.descriptors, descriptors())
	p.sessions = max(p.sessions, s.sessions())
	p.heap, p.system = max(p.heap, m.HeapAlloc), max(p.system, m.Sys)
}

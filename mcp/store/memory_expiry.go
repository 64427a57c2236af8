// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package store

import (
	"container/heap"
	"math"
	"time"
)

// never is the deadline of a value that does not expire.
const never time.Duration = math.MaxInt64

// deadline returns when a value expires whose TTL is set now.
func deadline(now, ttl time.Duration) time.Duration {
	if ttl == 0 || ttl > never-now {
		return never
	}
	return now + ttl
}

// expiry is the part of a value that holds its deadline. Deadlines count from the start of
// the store, on the monotonic clock.
type expiry struct {
	key      string
	deadline time.Duration
	slot     int // 1 + the index in the heap, or 0
}

func (e *expiry) over(now time.Duration) bool { return e.slot > 0 && e.deadline <= now }

// expiryHeap holds all values with a deadline, the earliest first.
type expiryHeap struct{ entries entries }

// first returns the value that expires next, or nil.
func (h *expiryHeap) first() *memoryValue {
	if len(h.entries) == 0 {
		return nil
	}
	return h.entries[0]
}

// set changes the deadline of a value.
func (h *expiryHeap) set(e *memoryValue, deadline time.Duration) {
	x := &e.expiry
	x.deadline = deadline
	switch {
	case deadline == never && x.slot > 0:
		heap.Remove(&h.entries, x.slot-1)
	case deadline == never:
	case x.slot > 0:
		heap.Fix(&h.entries, x.slot-1)
	default:
		heap.Push(&h.entries, e)
	}
}

// entries implements heap.Interface.
type entries []*memoryValue

func (s entries) Len() int           { return len(s) }
func (s entries) Less(i, j int) bool { return s[i].deadline < s[j].deadline }

func (s entries) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].slot, s[j].slot = i+1, j+1
}

func (s *entries) Push(e any) {
	entry, _ := e.(*memoryValue)
	*s = append(*s, entry)
	entry.slot = len(*s)
}

func (s *entries) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	e.slot = 0
	return e
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package store

import (
	"container/heap"
	"math"
	"time"
)

// never is the deadline of an entry that does not expire.
const never time.Duration = math.MaxInt64

// deadline returns when an entry expires whose TTL is set now.
func deadline(now, ttl time.Duration) time.Duration {
	if ttl == 0 || ttl > never-now {
		return never
	}
	return now + ttl
}

// expiry is the part of an entry that holds its deadline. Deadlines count from the start of
// the store, on the monotonic clock.
type expiry struct {
	key      string
	deadline time.Duration
	slot     int // 1 + the index in the heap, or 0
}

func (e *expiry) over(now time.Duration) bool { return e.slot > 0 && e.deadline <= now }
func (e *expiry) expires() *expiry            { return e }

// expiring is an entry that embeds an expiry.
type expiring interface{ expires() *expiry }

// expiryHeap holds all entries with a deadline, the earliest first.
type expiryHeap struct{ entries entries }

// first returns the entry that expires next, or nil.
func (h *expiryHeap) first() expiring {
	if len(h.entries) == 0 {
		return nil
	}
	return h.entries[0]
}

// set changes the deadline of an entry.
func (h *expiryHeap) set(e expiring, deadline time.Duration) {
	x := e.expires()
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
type entries []expiring

func (s entries) Len() int           { return len(s) }
func (s entries) Less(i, j int) bool { return s[i].expires().deadline < s[j].expires().deadline }

func (s entries) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].expires().slot, s[j].expires().slot = i+1, j+1
}

func (s *entries) Push(e any) {
	entry := e.(expiring)
	*s = append(*s, entry)
	entry.expires().slot = len(*s)
}

func (s *entries) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	e.expires().slot = 0
	return e
}

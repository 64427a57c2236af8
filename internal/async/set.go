// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package async

import (
	"slices"
	"sync"
)

// A Set collects distinct values for one receiver, which drains them when it is woken. Adding
// never waits. A set that would exceed its limits forgets its values instead: everything
// counts as added until it is drained. All methods may be called concurrently.
type Set[T any] struct {
	compare         func(a, b T) int
	size            func(T) int
	most, mostBytes int
	wake            chan struct{}

	mu     sync.Mutex
	values []T // sorted
	bytes  int
	all    bool
}

// NewSet returns a set that holds up to most values. compare defines their order, and size returns
// the bytes of one, of which the set holds at most mostBytes.
func NewSet[T any](most, mostBytes int, compare func(a, b T) int, size func(T) int) *Set[T] {
	return &Set[T]{compare: compare, size: size, most: most, mostBytes: mostBytes, wake: make(chan struct{}, 1)}
}

// Wake returns a channel that receives a value when there may be something to drain.
func (s *Set[T]) Wake() <-chan struct{} { return s.wake }

// Add adds values and wakes the receiver. Without values, it only wakes the receiver.
func (s *Set[T]) Add(values ...T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if s.all {
			break
		}
		i, found := slices.BinarySearchFunc(s.values, v, s.compare)
		if found {
			continue
		}
		if size := s.size(v); len(s.values) < s.most && s.bytes+size <= s.mostBytes {
			s.values = slices.Insert(s.values, i, v)
			s.bytes += size
		} else {
			s.values, s.bytes, s.all = nil, 0, true
		}
	}
	Wake(s.wake)
}

// AddAll adds everything and wakes the receiver.
func (s *Set[T]) AddAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values, s.bytes, s.all = nil, 0, true
	Wake(s.wake)
}

// Drain removes and returns the values, in order. all reports that everything was added; there
// are no values then.
func (s *Set[T]) Drain() (values []T, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	values, all = s.values, s.all
	s.values, s.bytes, s.all = nil, 0, false
	return values, all
}

// Len returns the number of values, and whether everything was added.
func (s *Set[T]) Len() (n int, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.values), s.all
}

// Wake signals c, which has a buffer of one, without blocking.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

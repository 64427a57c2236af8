// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package pending

import "sync"

// A Map holds the requests that wait for a response, by key. The zero Map is empty. It is
// safe for concurrent use.
type Map[K comparable, R any] struct {
	mu      sync.Mutex
	waiting map[K]chan R
}

// Add adds a request. The channel receives its response, at most one. Remove removes the
// request; it must be called if no response is wanted any more, and may always be called.
func (m *Map[K, R]) Add(key K) (response <-chan R, remove func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting == nil {
		m.waiting = map[K]chan R{}
	}
	c := make(chan R, 1)
	m.waiting[key] = c
	return c, func() { m.remove(key, c) }
}

func (m *Map[K, R]) remove(key K, c chan R) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[key] == c {
		delete(m.waiting, key)
	}
}

// Deliver passes a response to the request that waits for it, and reports whether there
// is one.
func (m *Map[K, R]) Deliver(key K, response R) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.waiting[key]
	if ok {
		delete(m.waiting, key)
		c <- response
	}
	return ok
}

// Only returns the key of the request that waits, if exactly one does.
func (m *Map[K, R]) Only() (key K, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) != 1 {
		return key, false
	}
	for key = range m.waiting {
	}
	return key, true
}

// ReceivedOr returns the response that a channel of [Map.Add] has received, or err if it
// has received none. It does not wait: use it when a connection has ended, which may be
// just after the response came.
func ReceivedOr[R any](response <-chan R, err error) (R, error) {
	select {
	case r := <-response:
		return r, nil
	default:
		var none R
		return none, err
	}
}

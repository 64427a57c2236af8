// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package async

import "sync"

// A Pending holds the requests that wait for a response, by key. The zero Pending is empty and
// ready to use. It is safe for concurrent use.
type Pending[K comparable, R any] struct {
	mu      sync.Mutex
	waiting map[K]chan R
}

// Add adds a request. The channel receives at most one response. remove removes the
// request. It must be called if a response is no longer wanted, and may always be called.
func (m *Pending[K, R]) Add(key K) (response <-chan R, remove func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting == nil {
		m.waiting = map[K]chan R{}
	}
	c := make(chan R, 1)
	m.waiting[key] = c
	return c, func() { m.remove(key, c) }
}

func (m *Pending[K, R]) remove(key K, c chan R) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[key] == c {
		delete(m.waiting, key)
	}
}

// Deliver passes a response to the request that waits for it, and reports whether there is
// such a request.
func (m *Pending[K, R]) Deliver(key K, response R) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.waiting[key]
	if ok {
		delete(m.waiting, key)
		c <- response
	}
	return ok
}

// Only returns the key of the waiting request, if there is exactly one. Old servers answer
// requests that they do not know with a null id, which can belong only to it.
func (m *Pending[K, R]) Only() (key K, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) != 1 {
		return key, false
	}
	for key = range m.waiting {
	}
	return key, true
}

// ReceivedOr returns the response that a channel of [Pending.Add] has received, or err if there
// is none. It does not wait. Use it when a connection has ended, because the response may
// have arrived just before.
func ReceivedOr[R any](response <-chan R, err error) (R, error) {
	select {
	case r := <-response:
		return r, nil
	default:
		var none R
		return none, err
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lru

import (
	"container/list"
	"iter"
)

// A Map is a map with a maximum number of entries, or a maximum size. It is not safe for
// concurrent use.
type Map[K comparable, V any] struct {
	max     int
	size    func(V) int
	total   int                 // of the sizes
	entries map[K]*list.Element // of *entry[K, V]
	recent  list.List           // the most recently used in front
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New returns an empty map with a maximum number of entries. If most is not positive, the
// map stays empty.
func New[K comparable, V any](most int) *Map[K, V] {
	return NewSized[K](most, func(V) int { return 1 })
}

// NewSized returns an empty map with a maximum sum of sizes, such as bytes. The size of a value
// must not change while it is in the map. A value that is too large alone is not kept.
func NewSized[K comparable, V any](most int, size func(V) int) *Map[K, V] {
	return &Map[K, V]{max: most, size: size, entries: map[K]*list.Element{}}
}

// Get returns the value of a key, and marks the key as used.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	at := m.entries[key]
	if at == nil {
		return value, false
	}
	m.recent.MoveToFront(at)
	return at.Value.(*entry[K, V]).value, true
}

// Put sets the value of a key, and marks the key as used.
func (m *Map[K, V]) Put(key K, value V) {
	m.total += m.size(value)
	if at := m.entries[key]; at != nil {
		e := at.Value.(*entry[K, V])
		m.total -= m.size(e.value)
		e.value = value
		m.recent.MoveToFront(at)
	} else {
		m.entries[key] = m.recent.PushFront(&entry[K, V]{key, value})
	}
	for m.total > m.max && m.recent.Len() > 0 {
		m.remove(m.recent.Back())
	}
}

// Delete removes a key, if it is present.
func (m *Map[K, V]) Delete(key K) {
	if at := m.entries[key]; at != nil {
		m.remove(at)
	}
}

// Oldest returns the least recently used entry whose value matches, without marking it as
// used.
func (m *Map[K, V]) Oldest(matches func(V) bool) (key K, value V, ok bool) {
	for at := m.recent.Back(); at != nil; at = at.Prev() {
		if e := at.Value.(*entry[K, V]); matches(e.value) {
			return e.key, e.value, true
		}
	}
	return key, value, false
}

// All iterates over the entries in no order, without marking them as used. The loop may
// delete entries.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key, at := range m.entries {
			if !yield(key, at.Value.(*entry[K, V]).value) {
				return
			}
		}
	}
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return m.recent.Len() }

func (m *Map[K, V]) remove(at *list.Element) {
	e := at.Value.(*entry[K, V])
	delete(m.entries, e.key)
	m.total -= m.size(e.value)
	m.recent.Remove(at)
}

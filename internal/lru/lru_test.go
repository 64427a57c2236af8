// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lru_test

import (
	"slices"
	"testing"

	"github.com/go-psi/psi/internal/lru"
)

// has checks which keys are present, without marking any as used.
func has(t *testing.T, m *lru.Map[string, int], want ...string) {
	t.Helper()
	var got []string
	for key := range m.All() {
		got = append(got, key)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || m.Len() != len(want) {
		t.Errorf("there are %q, %d in number, want %q", got, m.Len(), want)
	}
}

func TestMap(t *testing.T) {
	m := lru.New[string, int](3)
	for i, key := range []string{"a", "b", "c"} {
		m.Put(key, i)
	}
	if v, ok := m.Get("a"); v != 0 || !ok {
		t.Errorf("a is %d, %v", v, ok)
	}
	m.Put("b", 7) // c is now the oldest
	m.Put("d", 3)
	has(t, m, "a", "b", "d")
	if v, ok := m.Get("b"); v != 7 || !ok {
		t.Errorf("b is %d, %v", v, ok)
	}
	if v, ok := m.Get("c"); v != 0 || ok {
		t.Errorf("c is %d, %v", v, ok)
	}
	m.Delete("c")
	m.Delete("d")
	has(t, m, "a", "b")
	m.Put("e", 4)
	has(t, m, "a", "b", "e")
	if key, v, ok := m.Oldest(func(v int) bool { return v != 0 }); key != "b" || v != 7 || !ok {
		t.Errorf("the oldest is %q, %d, %v, want b", key, v, ok)
	}
	if _, _, ok := m.Oldest(func(int) bool { return false }); ok {
		t.Error("there is an oldest entry although none matches")
	}
	for key := range m.All() {
		if key != "b" {
			m.Delete(key)
		}
	}
	has(t, m, "b")
}

func TestNoRoom(t *testing.T) {
	for _, most := range []int{0, -1} {
		m := lru.New[string, int](most)
		m.Put("a", 1)
		has(t, m)
	}
}

// A map with a maximum size drops the oldest entries until the others fit, also when a value is
// replaced by a larger one.
func TestSized(t *testing.T) {
	m := lru.NewSized[string](10, func(v int) int { return v })
	for _, key := range []string{"a", "b", "c"} {
		m.Put(key, 3)
	}
	has(t, m, "a", "b", "c")
	m.Put("b", 4)
	has(t, m, "a", "b", "c")
	m.Put("b", 5)
	has(t, m, "b", "c")
	m.Delete("b")
	m.Put("d", 7)
	has(t, m, "c", "d")
	m.Put("e", 11)
	has(t, m)
	m.Put("f", 10)
	has(t, m, "f")
}

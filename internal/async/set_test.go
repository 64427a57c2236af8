// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package async_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/internal/async"
)

func newSet(most, mostBytes int) *async.Set[string] {
	return async.NewSet(most, mostBytes, strings.Compare, func(s string) int { return len(s) })
}

func TestSet(t *testing.T) {
	for _, test := range []struct {
		name string
		add  func(s *async.Set[string])
		want []string
		all  bool
	}{
		{"sorted and distinct", func(s *async.Set[string]) { s.Add("b", "a"); s.Add("b", "c") }, []string{"a", "b", "c"}, false},
		{"full", func(s *async.Set[string]) { s.Add("a", "b", "c"); s.Add("b") }, []string{"a", "b", "c"}, false},
		{"too many", func(s *async.Set[string]) { s.Add("a", "b", "c", "d") }, nil, true},
		{"too large", func(s *async.Set[string]) { s.Add("a", strings.Repeat("b", 9)) }, []string{"a", strings.Repeat("b", 9)}, false},
		{"much too large", func(s *async.Set[string]) { s.Add("aa", strings.Repeat("b", 9)) }, nil, true},
		{"more than all", func(s *async.Set[string]) { s.Add("a"); s.AddAll(); s.Add("b") }, nil, true},
		{"nothing", func(s *async.Set[string]) { s.Add() }, nil, false},
	} {
		s := newSet(3, 10)
		for range 2 { // a drained set is like a new one
			test.add(s)
			select {
			case <-s.Wake():
			default:
				t.Errorf("%s: the receiver is not woken", test.name)
			}
			if got, all := s.Drain(); !slices.Equal(got, test.want) || all != test.all {
				t.Errorf("%s: drained %q, %v; want %q, %v", test.name, got, all, test.want, test.all)
			}
		}
		if got, all := s.Drain(); got != nil || all {
			t.Errorf("%s: drained twice: %q, %v", test.name, got, all)
		}
	}
}

// Nothing that is added concurrently is lost.
func TestSetRace(t *testing.T) {
	s, seen := newSet(10000, 1<<20), map[string]bool{}
	var adding sync.WaitGroup
	for i := range 4 {
		adding.Go(func() {
			for j := range 100 {
				s.Add(strconv.Itoa(100*i + j))
			}
		})
	}
	for len(seen) < 400 {
		<-s.Wake()
		values, _ := s.Drain()
		for _, v := range values {
			seen[v] = true
		}
	}
	adding.Wait()
}

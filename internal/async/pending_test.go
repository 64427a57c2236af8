// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package async_test

import (
	"errors"
	"testing"

	"github.com/go-psi/psi/internal/async"
)

func TestPending(t *testing.T) {
	var m async.Pending[string, int]
	a, removeA := m.Add("a")
	if key, ok := m.Only(); key != "a" || !ok {
		t.Errorf("one waits, got %q, %t", key, ok)
	}
	_, removeB := m.Add("b")
	if _, ok := m.Only(); ok {
		t.Error("two wait, got one")
	}
	gone := errors.New("gone")
	if _, err := async.ReceivedOr(a, gone); !errors.Is(err, gone) {
		t.Errorf("before a response: %v", err)
	}
	if !m.Deliver("a", 7) || m.Deliver("a", 8) || m.Deliver("c", 9) {
		t.Error("a response is delivered once, to the request that waits for it")
	}
	if got, err := async.ReceivedOr(a, gone); got != 7 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	again, _ := m.Add("a")
	removeA() // already answered: the other request still waits
	removeB()
	if m.Deliver("b", 1) || !m.Deliver("a", 2) || <-again != 2 {
		t.Error("remove removed another request than its own")
	}
	if _, ok := m.Only(); ok {
		t.Error("none waits, got one")
	}
}

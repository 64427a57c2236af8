// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"errors"
	"slices"
	"sync"
)

var errBusy = errors.New("auth: too much is being verified at once")

// turns lets so many run at once, and others wait: first those whose credentials were
// good before, then one of each source after the other. Whoever sends many requests
// waits for itself. If too many wait, the one that came last from the source with the
// most makes room.
type turns struct {
	max  int // how many run at most
	room int // how many wait at most, besides the proven

	mu      sync.Mutex
	running int
	proven  []*waiter
	sources map[string][]*waiter // none of the lists is empty
	order   []string             // of the sources, the next one first
	waiting int                  // in sources
}

// A waiter is told nil when its turn has come, or why it does not come.
type waiter struct{ turn chan error }

func newTurns(most, room int) *turns {
	return &turns{max: most, room: room, sources: map[string][]*waiter{}}
}

// enter waits for a turn, which [turns.leave] ends.
func (t *turns) enter(ctx context.Context, source string, proven bool) error {
	t.mu.Lock()
	if t.running < t.max { // so nobody waits
		t.running++
		t.mu.Unlock()
		return nil
	}
	w := &waiter{make(chan error, 1)}
	if proven {
		t.proven = append(t.proven, w)
	} else if !t.queueLocked(source, w) {
		t.mu.Unlock()
		return errBusy
	}
	t.mu.Unlock()
	select {
	case err := <-w.turn:
		return err
	case <-ctx.Done():
		t.giveUp(source, w)
		return context.Cause(ctx)
	}
}

// queueLocked reports whether there is room for a waiter of a source.
func (t *turns) queueLocked(source string, w *waiter) bool {
	if t.waiting >= t.room && !t.shedLocked(len(t.sources[source])+1) {
		return false
	}
	if t.sources[source] == nil {
		t.order = append(t.order, source)
	}
	t.sources[source] = append(t.sources[source], w)
	t.waiting++
	return true
}

// shedLocked turns away the last waiter of the source that has the most, if these are
// more than so many.
func (t *turns) shedLocked(others int) bool {
	most := ""
	for source, list := range t.sources {
		if len(list) > len(t.sources[most]) {
			most = source
		}
	}
	last := len(t.sources[most]) - 1
	if last < others {
		return false
	}
	t.sources[most][last].turn <- errBusy
	t.removeLocked(most, last)
	return true
}

func (t *turns) removeLocked(source string, i int) {
	t.waiting--
	t.sources[source] = slices.Delete(t.sources[source], i, i+1)
	if len(t.sources[source]) == 0 {
		delete(t.sources, source)
		t.order = slices.DeleteFunc(t.order, func(s string) bool { return s == source })
	}
}

// leave gives the turn to the next who waits.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.proven) > 0:
		t.proven[0].turn <- nil
		t.proven = slices.Delete(t.proven, 0, 1)
	case len(t.order) > 0:
		source := t.order[0]
		t.order = append(slices.Delete(t.order, 0, 1), source) // it is the last now
		t.sources[source][0].turn <- nil
		t.removeLocked(source, 0)
	default:
		t.running--
	}
}

// giveUp leaves the queue, or the turn that has come meanwhile.
func (t *turns) giveUp(source string, w *waiter) {
	t.mu.Lock()
	i := slices.Index(t.sources[source], w)
	if i >= 0 {
		t.removeLocked(source, i)
	}
	j := slices.Index(t.proven, w)
	if j >= 0 {
		t.proven = slices.Delete(t.proven, j, j+1)
	}
	t.mu.Unlock()
	if i < 0 && j < 0 && <-w.turn == nil {
		t.leave()
	}
}

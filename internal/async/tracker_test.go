// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package async_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-psi/psi/internal/async"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestTracker(t *testing.T) {
	var tracker async.Tracker
	for n := range 2 {
		if !tracker.Enter() || tracker.Count() != n+1 {
			t.Fatalf("%d are in flight, want %d", tracker.Count(), n+1)
		}
	}
	drained := tracker.Drain()
	if tracker.Enter() {
		t.Error("work started after Drain")
	}
	tracker.Leave()
	if isClosed(drained) || tracker.Count() != 1 {
		t.Errorf("drained with %d in flight", tracker.Count())
	}
	tracker.Outside(func() {
		if !isClosed(drained) {
			t.Error("work outside is waited for")
		}
	})
	if tracker.Count() != 1 {
		t.Errorf("after Outside, %d are in flight, want 1", tracker.Count())
	}
	tracker.Leave()
	if !isClosed(tracker.Drain()) {
		t.Error("not drained after a second Drain")
	}
}

func TestTrackerWithoutWork(t *testing.T) {
	if !isClosed(new(async.Tracker).Drain()) {
		t.Error("not drained, although there was no work")
	}
}

// When the channel is closed, nothing is in flight, regardless of concurrent work.
func TestTrackerRace(t *testing.T) {
	for range 200 {
		var tracker async.Tracker
		var inFlight atomic.Int64
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				for tracker.Enter() {
					inFlight.Add(1)
					inFlight.Add(-1)
					tracker.Leave()
				}
			})
		}
		<-tracker.Drain()
		if n := inFlight.Load(); n != 0 {
			t.Fatalf("%d were in flight after it was drained", n)
		}
		workers.Wait()
	}
}

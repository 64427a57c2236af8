// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
)

var (
	runsFlag  = flag.Int("model.runs", 0, "how many runs TestModel makes; 0 means as many as an ordinary test may take")
	seedFlag  = flag.Uint64("model.seed", 0, "the seed of the only run that TestModel makes, or of its first if -model.runs is set")
	traceFlag = flag.Bool("model.trace", false, "print what happened also in runs that do not fail")
)

// TestMain silences the default logger, to which panics of tools in process are logged.
func TestMain(m *testing.M) {
	slog.SetDefault(quiet)
	m.Run()
}

// TestModel performs many runs, each determined by its seed. To repeat a failed run:
//
//	go test ./internal/test/model -run TestModel -model.seed 17
func TestModel(t *testing.T) {
	first, runs := uint64(1), 300
	switch {
	case *runsFlag > 0:
		runs, first = *runsFlag, max(*seedFlag, 1)
	case *seedFlag > 0:
		runs, first = 1, *seedFlag
	case testing.Short() || raceEnabled:
		runs = 40
	}
	failed := 0
	sum := &tally{}
	for seed := first; seed < first+uint64(runs) && failed < 5; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := run(t, seed, nil)
			sum.add(w)
			if *traceFlag || len(w.problems) > 0 {
				t.Logf("what happened:\n%s", strings.Join(w.trace, "\n"))
			}
			for _, p := range w.problems {
				t.Error(p)
			}
			if t.Failed() {
				failed++
				t.Logf("again: go test ./internal/test/model -run TestModel -model.seed %d", seed)
			}
		})
	}
	t.Log(sum)
	if runs >= 40 && failed == 0 {
		sum.check(t)
	}
}

// run performs the run of a seed in a synctest bubble. The bubble ends once all its
// goroutines have ended: leaked goroutines fail the test.
func run(t *testing.T, seed uint64, mutate mcp.Middleware) *world {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, v))
		}
	}()
	var w *world
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w = newWorld(ctx, seed, mutate)
		w.play()
		w.judge()
	})
	return w
}

// tally accumulates the outcomes of several runs, to detect a model that allows everything
// or tests nothing.
type tally struct {
	runs, calls, answered, failed, cancelled    int
	faults, lost, subscriptions, changes, heard int
	connections, logged, stolen, forged         int
}

func (s *tally) add(w *world) {
	s.runs++
	s.connections += w.connections
	s.changes += len(w.changes)
	s.lost += w.lost
	s.logged += w.logged
	s.stolen += w.stolen
	s.forged += w.forged
	for _, c := range w.calls {
		s.calls++
		s.faults += len(c.faults)
		switch {
		case c.err == nil:
			s.answered++
		case c.cancelled:
			s.cancelled++
		default:
			s.failed++
		}
	}
	for _, sub := range w.subs {
		s.subscriptions++
		s.heard += sub.count
	}
}

func (s *tally) String() string {
	return fmt.Sprintf("%d runs: %d connections, %d calls (%d answered, %d cancelled, %d failed; %d faults), %d sessions lost, %d changes, %d subscriptions that heard of %d, %d messages logged, %d stolen, %d forged",
		s.runs, s.connections, s.calls, s.answered, s.cancelled, s.failed, s.faults, s.lost, s.changes, s.subscriptions, s.heard, s.logged, s.stolen, s.forged)
}

// check checks that enough was tried and that most of it succeeded.
func (s *tally) check(t *testing.T) {
	t.Helper()
	if s.answered < s.calls/3 || s.cancelled == 0 || s.failed == 0 || s.faults == 0 || s.lost == 0 || s.heard < s.subscriptions/2 || s.subscriptions == 0 ||
		s.logged == 0 || s.stolen == 0 || s.forged == 0 {
		t.Errorf("the runs tried too little: %s", s)
	}
}

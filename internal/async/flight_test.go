// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package async_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/async"
)

var errLeft = errors.New("left")

// slow is a function that takes a second and counts its executions.
type slow struct{ started, cancelled atomic.Int32 }

func (s *slow) run(ctx context.Context) (int32, error) {
	n := s.started.Add(1)
	select {
	case <-time.After(time.Second):
		return n, nil
	case <-ctx.Done():
		s.cancelled.Add(1)
		return 0, ctx.Err()
	}
}

func TestCallersShareAnExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g async.Flight[string, int32]
		var s slow
		for want := int32(1); want <= 3; want += 2 { // a completed execution is not shared
			var sum atomic.Int32
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					n, err := g.Do(t.Context(), []string{"a", "b"}[i%2], s.run)
					if err != nil {
						t.Error(err)
					}
					sum.Add(n)
				})
			}
			wg.Wait()
			if sum.Load() != 5*want+5*(want+1) {
				t.Errorf("the results add up to %d after %d executions", sum.Load(), s.started.Load())
			}
		}
	})
}

func TestLastCallerCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g async.Flight[string, int32]
		var s slow
		leave := [2]context.CancelCauseFunc{}
		errs := make(chan error, 2)
		for i := range leave {
			var ctx context.Context
			ctx, leave[i] = context.WithCancelCause(t.Context())
			go func() {
				_, err := g.Do(ctx, "a", s.run)
				errs <- err
			}()
		}
		synctest.Wait()
		for i := range leave {
			if s.cancelled.Load() != 0 {
				t.Errorf("cancelled after %d callers left", i)
			}
			leave[i](errLeft)
			if err := <-errs; !errors.Is(err, errLeft) {
				t.Errorf("got %v", err)
			}
		}
		n, err := g.Do(t.Context(), "a", s.run) // does not join the cancelled execution
		if n != 2 || err != nil || s.cancelled.Load() != 1 {
			t.Errorf("got %d, %v after %d cancellations", n, err, s.cancelled.Load())
		}
	})
}

func TestDetachedExecutionContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := async.Flight[string, int32]{Detached: true}
		var s slow
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errLeft)
		defer cancel()
		if _, err := g.Do(ctx, "a", s.run); !errors.Is(err, errLeft) {
			t.Errorf("got %v", err)
		}
		g.Start(t.Context(), "a", s.run)
		if n, err := g.Do(t.Context(), "a", s.run); n != 1 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		g.Start(t.Context(), "a", s.run)
		if n, err := g.Do(t.Context(), "a", s.run); n != 2 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	})
}

func TestContextHasValuesOnly(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Hour)
	defer cancel()
	var g async.Flight[int, any]
	got, err := g.Do(ctx, 1, func(ctx context.Context) (any, error) {
		_, hasDeadline := ctx.Deadline()
		if hasDeadline {
			t.Error("the execution has the deadline of its caller")
		}
		return ctx.Value(key{}), nil
	})
	if got != "value" || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestPanicAndGoexitAreErrors(t *testing.T) {
	var g async.Flight[int, int]
	_, err := g.Do(t.Context(), 1, func(context.Context) (int, error) { panic("boom") })
	p, ok := errors.AsType[*async.PanicError](err)
	if !ok || p.Value != "boom" || !strings.Contains(err.Error(), "flight_test.go") {
		t.Errorf("got %v", err)
	}
	_, err = g.Do(t.Context(), 1, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
	if !errors.Is(err, async.ErrGoexit) {
		t.Errorf("got %v", err)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package async_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/async"
)

func TestFor(t *testing.T) {
	gone := errors.New("gone")
	for name, test := range map[string]struct {
		d, cancelled, want time.Duration
		err                error
	}{
		"all":      {d: time.Minute, cancelled: time.Hour, want: time.Minute},
		"some":     {d: time.Hour, cancelled: time.Minute, want: time.Minute, err: gone},
		"nothing":  {cancelled: time.Minute},
		"negative": {d: -time.Minute, cancelled: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				defer time.AfterFunc(test.cancelled, func() { cancel(gone) }).Stop()
				begun := time.Now()
				err := async.Sleep(ctx, test.d)
				if took := time.Since(begun); took != test.want || !errors.Is(err, test.err) {
					t.Errorf("after %v: %v; want %v after %v", took, err, test.err, test.want)
				}
			})
		})
	}
}

func TestBackoff(t *testing.T) {
	const first, most = 100 * time.Millisecond, time.Second
	for n, want := range []time.Duration{first, 2 * first, 4 * first, 8 * first, most, most} {
		if got := async.Backoff(first, most, n); got != want {
			t.Errorf("after %d attempts: %v, want %v", n, got, want)
		}
	}
	if got := async.Backoff(2*most, most, 0); got != most {
		t.Errorf("a first delay that is too long becomes %v", got)
	}
	if got := async.Backoff(1, math.MaxInt64, 1<<30); got != math.MaxInt64 {
		t.Errorf("without a limit, the delay becomes %v", got)
	}
}

func TestJitter(t *testing.T) {
	for range 100 {
		if got := async.Jitter(time.Second); got < time.Second/2 || got > time.Second {
			t.Fatalf("one second becomes %v", got)
		}
	}
	if got := async.Jitter(0); got != 0 {
		t.Errorf("no delay becomes %v", got)
	}
}

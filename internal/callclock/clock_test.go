// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package callclock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/callclock"
)

func TestClock(t *testing.T) {
	sleep := func(d time.Duration) { <-time.After(d) }
	for name, test := range map[string]struct {
		use  func(ctx context.Context, c *callclock.Clock)
		want time.Duration // when the clock expires, or 0 if never
	}{
		"unused": {func(context.Context, *callclock.Clock) {}, 10 * time.Second},
		"reset":  {func(_ context.Context, c *callclock.Clock) { sleep(9 * time.Second); c.Reset() }, 19 * time.Second},
		"stopped": {func(_ context.Context, c *callclock.Clock) {
			c.Stop()
			c.Reset()
		}, 0},
		"paused": {func(ctx context.Context, c *callclock.Clock) {
			first, second := callclock.Pause(ctx), c.Pause()
			sleep(time.Minute)
			first()
			first()
			c.Reset()
			sleep(time.Minute)
			second()
		}, 130 * time.Second},
		"paused for good": {func(_ context.Context, c *callclock.Clock) { c.Pause() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var after time.Duration
				c := callclock.Start(10*time.Second, func() { after = time.Since(start) })
				test.use(callclock.NewContext(t.Context(), c), c)
				sleep(time.Hour)
				synctest.Wait()
				if after != test.want {
					t.Errorf("expired after %v, want %v", after, test.want)
				}
			})
		})
	}
}

func TestPauseWithoutClock(t *testing.T) {
	if c := callclock.FromContext(t.Context()); c != nil {
		t.Errorf("got %v", c)
	}
	callclock.Pause(t.Context())()
}

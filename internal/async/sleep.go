// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package async

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for d and returns nil, or until ctx is done and returns its cause, whichever
// comes first. If d is not positive, it immediately returns the cause of ctx, or nil.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Backoff returns the delay before the next attempt: first, doubled n times, but at most
// most. n is the number of delays since the last success.
func Backoff(first, most time.Duration, n int) time.Duration {
	d := min(first, most)
	for ; n > 0 && d < most; n-- {
		d += min(d, most-d)
	}
	return d
}

// Jitter returns d, reduced at random by up to half, so that many clients of one server do
// not try again at the same time.
func Jitter(d time.Duration) time.Duration {
	return d - rand.N(d/2+1) //nolint:gosec // it is no secret
}

// Renew calls serve, which serves one subscription, until serve returns false, in which case
// Renew returns nil, or until ctx is done, in which case it returns the cause. The pause between
// two calls is first, and doubles up to most; after a subscription that lasted longer than most,
// it is first again. serve gets the pause before the call, 0 for the first one.
func Renew(ctx context.Context, first, most time.Duration, serve func(after time.Duration) (again bool)) error {
	var after time.Duration
	for n := 0; ; n++ {
		began := time.Now()
		if !serve(after) {
			return nil
		}
		if time.Since(began) > most {
			n = 0
		}
		after = Backoff(first, most, n)
		if err := Sleep(ctx, after); err != nil {
			return err
		}
	}
}

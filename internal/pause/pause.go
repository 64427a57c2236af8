// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package pause

import (
	"context"
	"time"
)

// For waits until d has passed and returns nil, or until ctx is done and returns its
// cause, whichever is first. It does not wait if d is not positive.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

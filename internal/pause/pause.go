// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package pause

import (
	"context"
	"time"
)

// For waits for d and returns nil, or until ctx is done and returns its cause, whichever
// comes first. If d is not positive, it immediately returns the cause of ctx, or nil.
func For(ctx context.Context, d time.Duration) error {
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

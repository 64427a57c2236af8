// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "context"

type progressState struct {
	sent bool
	last float64
}

// Progress tells the client how far the request of ctx has got: done of total,
// in any unit; a total of 0 or less means that it is not known. It does nothing
// if the client did not ask for progress, if done is not greater than before, or
// after the handler has returned.
func Progress(ctx context.Context, done, total float64, message string) {
	req := RequestFrom(ctx)
	if req == nil || req.ProgressToken().IsZero() {
		return
	}
	c := req.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.progress.sent && done <= c.progress.last {
		return
	}
	params := &ProgressParams{ProgressToken: req.ProgressToken(), Progress: done, Message: message}
	if total > 0 {
		params.Total = &total
	}
	raw, err := marshal(params)
	if err != nil { // done or total is no number
		return
	}
	if c.notifyLocked(ctx, NotificationProgress, raw) == nil {
		c.progress = progressState{sent: true, last: done}
	}
}

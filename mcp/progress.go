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
	req := RequestFromContext(ctx)
	if req == nil || req.ProgressToken().IsZero() {
		return
	}
	params := &ProgressParams{Progress: done, Message: message}
	if total > 0 {
		params.Total = &total
	}
	req.notifyProgress(ctx, params)
}

// notifyProgress tells the sender of the request about progress, under the sender's
// token. What is not greater than before is dropped, whichever copy of the request and
// whichever server said it: the progress of one call increases.
func (r *Request) notifyProgress(ctx context.Context, p *ProgressParams) {
	if r.ProgressToken().IsZero() {
		return
	}
	c := r.sharedCall()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.progress.sent && p.Progress <= c.progress.last {
		return
	}
	params := *p
	params.ProgressToken = r.ProgressToken()
	raw, err := marshal(&params)
	if err != nil { // the progress or the total is no number
		return
	}
	if c.notifyLocked(ctx, NotificationProgress, raw) == nil {
		c.progress = progressState{sent: true, last: p.Progress}
	}
}

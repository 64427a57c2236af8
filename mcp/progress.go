// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"math"
)

type progressState struct {
	sent  bool
	last  float64
	total *float64
}

// Progress reports to the client the progress of the request that ctx belongs to: done out of
// total, in any unit. A total of 0 or less means that the total is unknown. Progress does
// nothing if the client did not ask for progress, if done has not increased, or if the
// handler has returned.
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

// Heartbeat reports that the handler of the request that ctx belongs to is still working: it
// repeats the last progress, larger by as little as possible, because progress must increase
// (basic/utilities/progress). Clients that extend their timeout when there is progress then
// wait. Progress that the handler reports itself is neither hidden nor changed. Heartbeat
// does nothing where [Progress] does nothing. See middleware.Heartbeat.
func Heartbeat(ctx context.Context) {
	req := RequestFromContext(ctx)
	if req == nil || req.ProgressToken().IsZero() {
		return
	}
	c := req.sharedCall()
	c.mu.Lock()
	defer c.mu.Unlock()
	beat := &ProgressParams{Progress: 1e-9, Total: c.progress.total} // a larger number than the smallest, for readers with little precision
	if c.progress.sent && c.progress.last != 0 {
		beat.Progress = math.Nextafter(c.progress.last, math.Inf(1))
	}
	req.notifyProgressLocked(ctx, c, beat)
}

// notifyProgress sends a progress notification with the progress token of the request. The
// progress of a call must increase, so a notification that does not increase it is dropped,
// even if it comes from another copy of the request or a mounted server.
func (r *Request) notifyProgress(ctx context.Context, p *ProgressParams) {
	if r.ProgressToken().IsZero() {
		return
	}
	c := r.sharedCall()
	c.mu.Lock()
	defer c.mu.Unlock()
	r.notifyProgressLocked(ctx, c, p)
}

func (r *Request) notifyProgressLocked(ctx context.Context, c *call, p *ProgressParams) {
	if c.progress.sent && p.Progress <= c.progress.last {
		return
	}
	params := *p
	params.ProgressToken = r.ProgressToken()
	raw, err := marshal(&params)
	if err != nil { // a value is infinite or NaN, which JSON cannot represent
		return
	}
	if c.notifyLocked(ctx, NotificationProgress, raw) == nil {
		c.progress = progressState{sent: true, last: p.Progress, total: p.Total}
	}
}

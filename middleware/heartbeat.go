// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"time"

	"github.com/go-psi/psi/mcp"
)

// Heartbeat reports progress while a handler works, so that clients that extend their
// timeout when there is progress do not give up on it. Every interval, it calls
// [mcp.Heartbeat], which does not hide the progress that the handler reports itself. Requests
// without a progress token and subscriptions are passed on unchanged. Heartbeat is for
// servers. It panics if every is not positive.
func Heartbeat(every time.Duration) mcp.Middleware {
	mustBePositive("Heartbeat: the interval", every)
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.ProgressToken().IsZero() || req.Method == mcp.MethodListen {
				return next.ServeMCP(ctx, req)
			}
			beating, stop := context.WithCancel(ctx)
			defer stop()
			go beat(beating, every)
			return next.ServeMCP(ctx, req)
		})
	}
}

// beat ends when ctx is done. A beat that is being written to a slow client then ends with
// the write.
func beat(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			mcp.Heartbeat(ctx)
		case <-ctx.Done():
			return
		}
	}
}

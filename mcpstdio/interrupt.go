// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"context"
	"net"
	"time"
)

// An interrupter makes a Read that is under way, and those that follow, fail with
// [os.ErrDeadlineExceeded] until it is told to resume. Nothing is read meanwhile that
// is not returned.
type interrupter interface {
	interrupt()
	resume()
}

// longAgo is a deadline that is over.
var longAgo = time.Unix(1, 0)

// interruptWhenDone interrupts reading when ctx is done, until stop is called. After
// that nothing is interrupted any more.
func interruptWhenDone(ctx context.Context, i interrupter) (stop func()) {
	interrupted := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		i.interrupt()
		close(interrupted)
	})
	return func() {
		if !cancel() {
			<-interrupted
			i.resume()
		}
	}
}

// connReads interrupts who reads a connection, of which it has the deadline.
type connReads struct{ net.Conn }

func (c connReads) interrupt() { _ = c.SetReadDeadline(longAgo) }

func (c connReads) resume() { _ = c.SetReadDeadline(time.Time{}) }

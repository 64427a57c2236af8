// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"time"
)

// exchange is the life of the HTTP requests on behalf of one call: they end with
// the call's context, or with the connection.
type exchange struct {
	inbox    *inbox
	ctx      context.Context // of the HTTP requests
	cancel   context.CancelCauseFunc
	stop     func() bool // stops what would end it
	detached bool
}

// exchange keeps the values of the call's context, for the RoundTripper.
func (b *inbox) exchange(ctx context.Context) *exchange {
	x := &exchange{inbox: b}
	x.ctx, x.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	b.begin(x)
	if ctx.Err() != nil {
		x.cancel(context.Cause(ctx)) // now, not soon
	}
	if ctx.Done() != nil {
		x.stop = context.AfterFunc(ctx, func() { x.cancel(context.Cause(ctx)) })
	}
	return x
}

// begin enters an exchange among those that end with the connection. They are a set,
// and not each told by a context, because every call would pay for that.
func (b *inbox) begin(x *exchange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		x.cancel(b.Err())
		return
	}
	if b.lives == nil {
		b.lives = map[*exchange]struct{}{}
	}
	b.lives[x] = struct{}{}
}

// endExchanges ends what is under way with the connection, which nothing is begun on
// any more.
func (b *inbox) endExchanges() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for x := range b.lives {
		x.cancel(b.Err())
	}
}

// blame is the reason for which the exchange was ended, if it was, rather than
// what followed from it.
func (x *exchange) blame(err error) error {
	if err != nil && x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	return err
}

// end ends the exchange, unless it goes on without its call.
func (x *exchange) end() {
	if !x.detached {
		x.release()
	}
}

// drainTime is how long an HTTP request may go on of which nothing more is wanted,
// so that it ends in good order and its network connection can be used again.
const drainTime = time.Second

// detach lets the exchange go on without its call for a while: until last returns. The
// end of the connection waits for it, for net/http may take a request that is
// cancelled just when it is done for the next one on the same network connection.
func (b *inbox) detach(x *exchange, last func()) {
	x.detached = true
	b.leaveTo(x)
	work := func() {
		defer x.release()
		last()
	}
	if !b.run(work) {
		x.cancel(b.Err())
		work()
	}
}

// leaveTo leaves the end of an exchange to its own time.
func (b *inbox) leaveTo(x *exchange) {
	b.remove(x)
	if x.stop != nil {
		x.stop()
	}
	x.stop = time.AfterFunc(drainTime, func() { x.cancel(context.DeadlineExceeded) }).Stop
}

func (b *inbox) remove(x *exchange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.lives, x)
}

func (x *exchange) release() {
	x.inbox.remove(x)
	if x.stop != nil {
		x.stop()
	}
	x.cancel(nil)
}

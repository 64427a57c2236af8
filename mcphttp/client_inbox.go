// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// closeTime is how long it may take to close a connection, whatever its server
// does.
const closeTime = 2 * time.Second

// inbox is the part of a connection that takes what the server says, and the end
// of it. The connection works in the goroutines of its callers and in some of its
// own; the inbox knows them all.
type inbox struct {
	receive mcp.Receiver
	turn    sync.Mutex // held while receive is called

	ctx    context.Context // ends when the connection does, with the reason
	cancel context.CancelCauseFunc
	closed sync.Once
	done   chan struct{}
	over   sync.Once // closes done

	mu      sync.Mutex
	working int
	ended   bool          // nothing new begins
	idle    chan struct{} // closed when nothing works after the end
	silent  sync.Once     // closes idle
}

func newInbox(receive mcp.Receiver) *inbox {
	b := &inbox{receive: receive, done: make(chan struct{}), idle: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancelCause(context.Background())
	return b
}

// Done and Err are those of [mcp.Wire].
func (b *inbox) Done() <-chan struct{} { return b.done }

func (b *inbox) Err() error { return context.Cause(b.ctx) }

// enter begins work, unless the connection has ended; leave ends it.
func (b *inbox) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return false
	}
	b.working++
	return true
}

func (b *inbox) leave() { b.add(-1) }

func (b *inbox) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.working += n
	if b.ended && b.working == 0 {
		b.silent.Do(func() { close(b.idle) })
	}
}

// run does work in the background, unless the connection has ended.
func (b *inbox) run(work func()) bool {
	if !b.enter() {
		return false
	}
	go func() {
		defer b.leave()
		work()
	}()
	return true
}

// deliver gives the receiver one message at a time. Who is in the receiver, or
// waits for it, does not count as working: it may be the receiver that closes the
// connection, and waits for all who work.
func (b *inbox) deliver(m mcp.Message, about mcp.ID) {
	b.add(-1)
	defer b.add(1)
	b.turn.Lock()
	defer b.turn.Unlock()
	if b.ctx.Err() == nil {
		b.receive(m, about)
	}
}

// end ends the connection for a reason, without waiting for anything.
func (b *inbox) end(reason error) {
	b.cancel(reason)
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.add(0)
}

// close ends the connection, says goodbye, and waits for what works to end, for no
// longer than closeTime.
func (b *inbox) close(goodbye func(ctx context.Context)) {
	b.closed.Do(func() {
		b.end(mcp.ErrClosed)
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			goodbye(ctx)
		}()
		for _, c := range []<-chan struct{}{gone, b.idle} {
			select {
			case <-c:
			case <-ctx.Done(): // an http.RoundTripper that does not care for its context
			}
		}
		b.finish()
	})
}

// finish tells that the connection has ended.
func (b *inbox) finish() { b.over.Do(func() { close(b.done) }) }

// exchange is the life of the HTTP requests on behalf of one call: they end with
// the call's context, or with the connection.
type exchange struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	stop     []func() bool // what would end it; the call's first
	detached bool
}

// exchange keeps the values of the call's context, for the RoundTripper.
func (b *inbox) exchange(ctx context.Context) *exchange {
	x := &exchange{}
	x.ctx, x.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, until := range []context.Context{ctx, b.ctx} {
		if until.Err() != nil {
			x.cancel(context.Cause(until)) // now, not soon
		}
		x.stop = append(x.stop, context.AfterFunc(until, func() { x.cancel(context.Cause(until)) }))
	}
	return x
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
	for _, stop := range x.stop {
		stop()
	}
	x.stop = []func() bool{time.AfterFunc(drainTime, func() { x.cancel(context.DeadlineExceeded) }).Stop}
	work := func() {
		defer x.release()
		last()
	}
	if !b.run(work) {
		x.cancel(b.Err())
		work()
	}
}

func (x *exchange) release() {
	for _, stop := range x.stop {
		stop()
	}
	x.cancel(nil)
}

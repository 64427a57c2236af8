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
	lives   map[*exchange]struct{}
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
	b.endExchanges()
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

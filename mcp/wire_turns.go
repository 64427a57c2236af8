// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// lull is how long no call reads before the background does; it may be twice that. A
// timer that is due before the next tick of the system makes every wait for a file
// dearer, by as much as the turns save.
const lull = 10 * time.Millisecond

// oftenEnough is how many calls, one soon after the other, make the next one read. For
// those that are rarer the background need not give up the turn and come back.
const oftenEnough = 8

// turns say who reads the stream of a client. If the stream is interruptible, it is
// whoever waits for an answer alone, so that none goes from one goroutine to another
// for a client that makes one call after the other; and a goroutine in the background
// when several wait, or calls are rare. Otherwise it is the goroutine in the
// background, always.
//
// There is one turn to read, which somebody has or free holds. Whoever has it reads,
// takes what he read, and does nothing else: above all he does not write, for which
// he might have to wait until something is read. While free holds it, the timer runs.
// It is not set anew by each call: that wakes a thread that waits for files.
type turns struct {
	wire   *streamWire
	stream Stream
	free   chan struct{} // of capacity 1; nil if calls never read
	timer  *time.Timer   // of the background
	runs   atomic.Bool   // the timer does
	calls  atomic.Int32  // that wait for answers, but for subscriptions

	// These belong to who has the turn.
	led  bool // a call has read since the timer began to run
	over bool // nothing is read any more
}

func (t *turns) begin(w *streamWire, stream Stream) {
	t.wire, t.stream = w, stream
	if s, ok := stream.(interface{ Interruptible() bool }); ok && s.Interruptible() {
		t.free = make(chan struct{}, 1)
		t.runs.Store(true)
		t.timer = time.AfterFunc(lull, t.readOn)
	}
	go t.read()
}

// lead reads until a call has its answer or ends without. It has the turn.
func (t *turns) lead(ctx context.Context, answer <-chan *Response) {
	defer t.leave()
	t.led = true
	for len(answer) == 0 && ctx.Err() == nil && t.wire.ctx.Err() == nil {
		t.next(ctx)
	}
}

// leave ends lead. Where more calls wait, one goroutine that reads for all of them is
// better than that each wakes the next one.
func (t *turns) leave() {
	if t.calls.Load() > 1 {
		go t.read()
		return
	}
	t.pass()
}

// read reads in the background, until the end or until calls had better read: often
// enough in a row, the answer was to the only one that waited and came soon after the
// last. It has the turn.
func (t *turns) read() {
	defer t.pass()
	var last time.Time
	for inRow := 0; inRow < oftenEnough && !t.over; {
		if !t.next(t.wire.ctx) || t.free == nil {
			continue
		}
		now := time.Now()
		if inRow++; t.calls.Load() > 1 || now.Sub(last) > lull {
			inRow = 0
		}
		last = now
	}
}

// next reads one message and reports whether a call has its answer now.
func (t *turns) next(ctx context.Context) (answered bool) {
	data, err := t.stream.Read(ctx)
	if err == nil {
		return t.wire.take(data)
	}
	if _, dropped := errors.AsType[*Error](err); dropped {
		return t.wire.takeOne(unreadable(Message{}, err))
	}
	if interrupted := ctx.Err() != nil && t.wire.ctx.Err() == nil; !interrupted { // or the next one finds the end, too
		t.over = true
		t.wire.end(err)
		close(t.wire.done)
	}
	return false
}

// pass lets others read. It is the last that is done with the turn, also when a
// Receiver panics in a call.
func (t *turns) pass() {
	if t.over {
		return
	}
	t.free <- struct{}{}
	if t.wire.ctx.Err() != nil { // Close may have looked too early
		go t.readOn()
		return
	}
	if !t.runs.Swap(true) {
		t.timer.Reset(lull)
	}
}

// readOn reads unless somebody does, or calls have since the timer began to run. That
// runs is false before it looks for the turn: who passes it later sets the timer.
func (t *turns) readOn() {
	t.runs.Store(false)
	select {
	case <-t.free:
	default:
		return
	}
	if t.led {
		t.led = false
		t.pass()
		return
	}
	t.read()
}

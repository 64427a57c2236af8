// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"io"
	"sync"
)

// A Stream carries whole messages both ways. What implements it can be served
// with [ServeStream], and [StreamTransport] makes a transport of it.
//
// A stream may have a method Interruptible() bool, which is called once. It reports
// whether a Read returns soon after its ctx is done, with the cause, or after Close,
// and leaves nothing out: the next Read goes on where it stopped, be it in the midst
// of a message, or says again that the stream has ended. Then a client reads on the
// goroutine that waits for an answer, which costs less than to wake it.
type Stream interface {
	// Read returns the next message, which the caller then owns. It returns
	// [io.EOF] when the peer has no more to say. An error that is or wraps an
	// [*Error] costs one message, not the stream: the peer is told, and Read is
	// called again. Only one Read runs at a time. Read may, but need not, return
	// when ctx is done.
	Read(ctx context.Context) ([]byte, error)
	// Write sends a message, which it must not keep. Several goroutines may call
	// it at once; messages do not mix.
	Write(ctx context.Context, message []byte) error
	// Close ends the stream. A Read or Write that is under way returns soon, if
	// it can be made to.
	Close() error
}

// pipeRoom is how many messages a pipe holds that were not read yet.
const pipeRoom = 64

// Pipe makes two streams of which one reads what the other writes, in memory.
// They work inside a testing/synctest bubble.
func Pipe() (Stream, Stream) {
	a, b := newPipeHalf(), newPipeHalf()
	return &pipeStream{in: a, out: b}, &pipeStream{in: b, out: a}
}

// pipeHalf is one direction.
type pipeHalf struct {
	messages chan []byte
	closed   chan struct{}
	once     sync.Once
}

func newPipeHalf() *pipeHalf {
	return &pipeHalf{messages: make(chan []byte, pipeRoom), closed: make(chan struct{})}
}

func (h *pipeHalf) close() { h.once.Do(func() { close(h.closed) }) }

type pipeStream struct{ in, out *pipeHalf }

func (p *pipeStream) Read(ctx context.Context) ([]byte, error) {
	select {
	case m := <-p.in.messages:
		return m, nil
	default:
	}
	select {
	case m := <-p.in.messages:
		return m, nil
	case <-p.in.closed:
		return p.readLast()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// readLast takes what was written before the pipe was closed.
func (p *pipeStream) readLast() ([]byte, error) {
	select {
	case m := <-p.in.messages:
		return m, nil
	default:
		return nil, io.EOF
	}
}

func (p *pipeStream) Write(ctx context.Context, message []byte) error {
	select {
	case <-p.out.closed:
		return io.ErrClosedPipe
	default:
	}
	select {
	case p.out.messages <- append([]byte(nil), message...):
		return nil
	case <-p.out.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *pipeStream) Close() error {
	p.in.close()
	p.out.close()
	return nil
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import (
	"context"
	"io"
	"sync"
)

// A Stream carries whole messages in both directions. mcpstdio.ServeStream serves the peer of
// a stream; [NewConn] returns a client connection that uses a stream. A Stream may also have a
// method Peer() string, whose result is the Peer in the [Info] of that connection.
type Stream interface {
	// Read returns the next message, which the caller then owns. It returns [io.EOF] when
	// the peer has closed the stream. An error that is or wraps a [*MessageError] concerns a
	// single message: the peer is answered with it, and Read is called again. Read is not
	// called concurrently. It may, but need not, return when ctx is done.
	Read(ctx context.Context) ([]byte, error)
	// Write sends a message, which it must not retain. It must be safe for concurrent use. If
	// ctx is done first, it returns the cause of ctx, and the message may still be sent.
	Write(ctx context.Context, message []byte) error
	// Close closes the stream. If possible, it interrupts a Read or Write in progress.
	Close() error
}

// pipeRoom is the number of unread messages that a pipe buffers in each direction.
const pipeRoom = 64

// Pipe returns the two ends of an in-memory stream: each end reads the messages that the
// other end writes. Both work inside a testing/synctest bubble.
func Pipe() (Stream, Stream) {
	a, b := newPipeHalf(), newPipeHalf()
	return &pipeStream{in: a, out: b}, &pipeStream{in: b, out: a}
}

// pipeHalf is one direction of a pipe.
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

// readLast returns a message that was written before the pipe was closed, or io.EOF.
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// A lineWriter writes messages, one a line and each at once. Unlike the writing
// half of [NewStream] it gives up when a context is done, as far as the file or
// connection can be made to (pipes on Windows cannot); and it can be closed while
// it writes.
type lineWriter struct {
	w    deadlineWriter
	turn chan struct{} // holds the turn to write while nobody writes
	buf  []byte        // begins with the rest of a line whose writer gave up in its midst
}

type deadlineWriter interface {
	io.WriteCloser
	SetWriteDeadline(t time.Time) error
}

func newLineWriter(w deadlineWriter) *lineWriter {
	l := &lineWriter{w: w, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// write writes a message whole or, when ctx is done in time, not at all. In
// between the error is that of ctx too, and the next write completes the line.
func (l *lineWriter) write(ctx context.Context, message []byte) error {
	select {
	case <-l.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { l.turn <- struct{}{} }()
	defer l.interrupt(ctx)()
	rest := len(l.buf)
	l.buf = append(l.buf, message...)
	inOneLine(l.buf[rest:])
	l.buf = append(l.buf, '\n')
	n, err := l.w.Write(l.buf)
	if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil {
		err = context.Cause(ctx)
		if n <= rest {
			l.buf = l.buf[:rest] // none of the message
		}
	}
	l.keep(n)
	return err
}

// keep keeps what was not written.
func (l *lineWriter) keep(written int) {
	if written == len(l.buf) && cap(l.buf) > keepSize {
		l.buf = nil
		return
	}
	l.buf = l.buf[:copy(l.buf, l.buf[written:])]
}

// interrupt ends a write when ctx is done, until stop is called.
func (l *lineWriter) interrupt(ctx context.Context) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	interrupted := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		_ = l.w.SetWriteDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	return func() {
		if !cancel() {
			<-interrupted
			_ = l.w.SetWriteDeadline(time.Time{})
		}
	}
}

// close closes the file, also while it is written to. It may be called more than
// once.
func (l *lineWriter) close() { _ = l.w.Close() }

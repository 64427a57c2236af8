// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"errors"
	"io"
	"os"
	"time"
)

// An output is our end of a pipe that a process writes to. It ends soon after the
// process, even if another process still has the pipe.
type output struct {
	f       *os.File
	gone    <-chan struct{} // closed when the process has ended
	stopped chan struct{}   // closed when nobody is to read any more
	turn    chan struct{}   // holds the turn to read while nobody reads
}

func newOutput(f *os.File, gone <-chan struct{}) *output {
	o := &output{f: f, gone: gone, stopped: make(chan struct{}), turn: make(chan struct{}, 1)}
	o.turn <- struct{}{}
	return o
}

// Read implements [io.Reader]. It returns io.EOF when the output is discarded.
func (o *output) Read(b []byte) (int, error) {
	select {
	case <-o.turn:
	case <-o.stopped:
		return 0, io.EOF
	}
	defer func() { o.turn <- struct{}{} }()
	select {
	case <-o.stopped:
		return 0, io.EOF
	default:
		return o.read(b)
	}
}

// read is Read for those who have the turn.
func (o *output) read(b []byte) (int, error) {
	select {
	case <-o.gone:
		o.hurry()
	default:
	}
	n, err := o.f.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

// hurry bounds the wait for more: the process has ended. What is there already
// is read however late.
func (o *output) hurry() { _ = o.f.SetReadDeadline(time.Now().Add(settle)) }

// discard makes Read return, and reads the rest to its end so that the process
// does not wait for a reader. It is called once.
func (o *output) discard(done chan<- struct{}) {
	defer close(done)
	close(o.stopped)
	_ = o.f.SetReadDeadline(time.Unix(1, 0))
	<-o.turn
	_ = o.f.SetReadDeadline(time.Time{})
	buf := make([]byte, 8<<10)
	for {
		if _, err := o.read(buf); err != nil {
			_ = o.f.Close()
			return
		}
	}
}

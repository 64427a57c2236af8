// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// An output is our end of a pipe that a process writes to. It ends soon after the
// process, even if another process still has the pipe.
//
// Its deadline is over while somebody is interrupted, and otherwise the end of the
// wait for more. Who is interrupted is who has the turn: he who reads, by his context,
// until he resumes; or whoever reads when nobody is to any more, until he has left.
// After stopped is closed only the latter counts, so that a context that is done late
// does not interrupt discard. Only a deadline that is over without an interrupt of
// who reads is the end.
type output struct {
	f       *os.File
	gone    <-chan struct{} // closed when the process has ended
	stopped chan struct{}   // closed when nobody is to read any more
	turn    chan struct{}   // holds the turn to read while nobody reads

	mu          sync.Mutex
	interrupted bool
	end         time.Time // of the wait for more; zero while the process runs
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
	if o.isStopped() {
		return 0, io.EOF
	}
	return o.read(b)
}

// read is Read for those who have the turn.
func (o *output) read(b []byte) (int, error) {
	select {
	case <-o.gone:
		o.hurry()
	default:
	}
	n, err := o.f.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) && !o.isInterrupted() {
		err = io.EOF
	}
	return n, err
}

// hurry bounds the wait for more: the process has ended. What is there already
// is read however late.
func (o *output) hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end = time.Now().Add(settle)
	o.setDeadline(o.interrupted)
}

// interrupt implements [interrupter].
func (o *output) interrupt() { o.setInterrupted(true) }

func (o *output) resume() { o.setInterrupted(false) }

func (o *output) setInterrupted(yes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.isStopped() {
		o.setDeadline(yes)
	}
}

// setDeadline is called with the lock.
func (o *output) setDeadline(interrupted bool) {
	o.interrupted = interrupted
	deadline := o.end
	if interrupted {
		deadline = longAgo
	}
	_ = o.f.SetReadDeadline(deadline)
}

func (o *output) isInterrupted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.interrupted && !o.isStopped()
}

func (o *output) isStopped() bool {
	select {
	case <-o.stopped:
		return true
	default:
		return false
	}
}

// hasDeadlines reports whether reading can be interrupted. Pipes on Windows cannot.
func (o *output) hasDeadlines() bool { return o.f.SetReadDeadline(time.Time{}) == nil }

// discard makes Read return, and reads the rest to its end so that the process
// does not wait for a reader. It is called once.
func (o *output) discard(done chan<- struct{}) {
	defer close(done)
	o.mu.Lock()
	close(o.stopped)
	o.setDeadline(true)
	o.mu.Unlock()
	<-o.turn
	o.mu.Lock()
	o.setDeadline(false)
	o.mu.Unlock()
	buf := make([]byte, 8<<10)
	for {
		if _, err := o.read(buf); err != nil {
			_ = o.f.Close()
			return
		}
	}
}

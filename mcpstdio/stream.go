// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp/transport"
)

// DefaultMaxMessage is the default maximum length of a message, in bytes.
const DefaultMaxMessage = 64 << 20

// LineOptions configure [NewStream]. Nil means the zero LineOptions.
type LineOptions struct {
	// MaxMessage is the maximum length of a message in bytes. A longer message is refused
	// with an error; the stream continues, unless it is the first message. 0 means
	// [DefaultMaxMessage], negative no limit.
	MaxMessage int
	// Close is called once, when the stream is closed. Nil means that the reader and
	// the writer stay open, as the standard files of a process must.
	Close func() error
}

// NewStream returns a stream of messages, one per line. Blank lines, carriage returns at
// the end of a line and a byte order mark at the start are skipped. If the first line is
// not JSON, the stream ends: the peer speaks another protocol, such as HTTP.
//
// Written messages are buffered while another complete line is waiting to be read, so that
// a burst of requests is answered with few writes, and a single request immediately. A peer
// that does not read blocks writers until their context is done, but never the reader. A
// message whose writer has given up is still written, in order, when the peer reads again.
func NewStream(r io.Reader, w io.Writer, opts *LineOptions) transport.Stream {
	if r == nil || w == nil {
		panic("mcpstdio: NewStream: the reader and the writer must not be nil")
	}
	return newStream(r, w, opts)
}

func newStream(r io.Reader, w io.Writer, opts *LineOptions) *stream {
	s := &stream{w: w}
	if opts != nil {
		s.opts = *opts
	}
	s.in = newLineReader(r, s.opts.MaxMessage)
	return s
}

const (
	flushSize = 64 << 10 // no more than this is held back, except for a single longer message
	keepSize  = 1 << 20  // a buffer that grew larger is not kept

	// closeTime limits how long Close waits for a peer that does not read, if it can end
	// the write.
	closeTime = time.Second
)

type stream struct {
	opts LineOptions

	// isPatient reports that Write need not return when its context is done, so that it can
	// write without a goroutine. The server of this package limits what is served at once.
	isPatient bool

	// Used only by Read, which is not called concurrently.
	in      *lineReader
	checked bool  // the first message has been checked
	ended   error // why the stream has ended, nil if it has not

	mu         sync.Mutex // not held while writing
	w          io.Writer
	out        []byte // messages not yet written
	spare      []byte // memory for out
	flushTimer *time.Timer
	lineWaits  bool          // a complete line waits to be read: its response flushes out
	writing    bool          // a goroutine is writing, and will also write what is added to out
	written    chan struct{} // closed when a write has ended; nil if nothing waits for that
	err        error         // the first write error
	close      sync.Once
}

// Read implements [transport.Stream].
func (s *stream) Read(context.Context) ([]byte, error) {
	if s.ended != nil {
		return nil, s.ended
	}
	line, err := s.readMessage()
	if !s.checked {
		s.checked = true
		return s.checkFirst(line, err)
	}
	return line, err
}

func (s *stream) readMessage() ([]byte, error) {
	for {
		if !s.in.hasLine() {
			s.flushBeforeWait()
		}
		line, err := s.in.readLine()
		s.setLineWaits(s.in.hasLine())
		if err != nil || len(line) > 0 {
			return line, err
		}
	}
}

// errOtherProtocol ends a stream whose peer may be a web browser. A page can send any body
// to any port, but only after an HTTP header that it cannot change. Reading past such a
// header would run the tools that the body names.
var errOtherProtocol = errors.New("the first line is not a JSON message: the peer speaks another protocol")

// checkFirst checks the first message of a stream. If it is not JSON or is too long,
// checkFirst returns the error and ends the stream.
func (s *stream) checkFirst(line []byte, err error) ([]byte, error) {
	if err == nil {
		if syntax := jsonscan.Valid(line, 0); syntax != nil {
			err = &transport.MessageError{Code: transport.CodeParseError, Err: fmt.Errorf("malformed JSON: %w", syntax)}
		}
	}
	if err == nil {
		return line, nil
	}
	if _, refused := errors.AsType[*transport.MessageError](err); refused {
		s.ended = fmt.Errorf("mcpstdio: %w", errOtherProtocol)
	}
	return nil, err
}

// flushBeforeWait is called before Read waits for input. Messages that are held back, because
// the last line had no response, are written.
func (s *stream) flushBeforeWait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lineWaits = false
	s.startFlushLocked()
}

// flushDelay is how long messages that were held back wait for the response to the last line.
const flushDelay = time.Millisecond

// setLineWaits records whether another line is waiting to be read. If none is, messages
// that were held back are written with the next response, or after flushDelay.
func (s *stream) setLineWaits(waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lineWaits = waits
	switch {
	case waits || len(s.out) == 0:
	case s.flushTimer == nil:
		s.flushTimer = time.AfterFunc(flushDelay, s.flushRest)
	default:
		s.flushTimer.Reset(flushDelay)
	}
}

func (s *stream) flushRest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startFlushLocked()
}

// Write implements [transport.Stream]. A message is held back, added to those being written,
// or written at once.
func (s *stream) Write(ctx context.Context, message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.writing && len(s.out) > 0 && len(s.out)+len(message) > flushSize {
		if err := s.waitLocked(ctx); err != nil {
			return err
		}
	}
	if s.err != nil {
		return s.err
	}
	start := len(s.out)
	s.out = append(s.out, message...)
	removeLineBreaks(s.out[start:])
	s.out = append(s.out, '\n')
	if s.writing || s.lineWaits && len(s.out) <= flushSize {
		return nil
	}
	if s.isPatient {
		s.writing = true
		s.writeLocked()
	} else {
		s.startFlushLocked()
	}
	for s.writing {
		if err := s.waitLocked(ctx); err != nil {
			return err
		}
	}
	return s.err
}

// waitLocked waits until some of the buffer was written. If ctx is done first, it returns its
// cause. It releases the lock while it waits.
func (s *stream) waitLocked(ctx context.Context) error {
	if s.written == nil {
		s.written = make(chan struct{})
	}
	written := s.written
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-written:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startFlushLocked starts a goroutine that writes the buffer, unless one is writing or there is
// nothing to write. Closing the stream whenever a writer gives up would end a connection
// because of one cancelled call.
func (s *stream) startFlushLocked() {
	if s.writing || len(s.out) == 0 || s.err != nil {
		return
	}
	s.writing = true
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.writeLocked()
	}()
}

// writeLocked writes the buffer, and what is added to it meanwhile. It releases the lock while
// it writes, because two peers that both write more than the other can buffer must still be
// able to read, and writers to a peer that does not read must be able to give up.
func (s *stream) writeLocked() {
	for s.writing {
		out := s.out
		s.out, s.spare = s.spare[:0], nil
		s.mu.Unlock()
		_, err := s.w.Write(out)
		s.mu.Lock()
		s.err = err
		if cap(out) <= keepSize {
			s.spare = out
		}
		s.writing = len(s.out) > 0 && s.err == nil
		if s.written != nil {
			close(s.written)
			s.written = nil
		}
	}
}

// Close implements [transport.Stream]. It flushes what can be written. If LineOptions.Close
// is nil, it waits for a write in progress.
func (s *stream) Close() (err error) {
	ctx := context.Background()
	if s.opts.Close != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, closeTime)
		defer cancel()
	}
	s.mu.Lock()
	s.lineWaits = false
	s.startFlushLocked()
	for s.writing && s.waitLocked(ctx) == nil {
	}
	s.mu.Unlock()
	if s.opts.Close != nil {
		s.close.Do(func() { err = s.opts.Close() })
	}
	return err
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// DefaultMaxMessage is how long a message may be where no other limit is set.
const DefaultMaxMessage = 64 << 20

// StreamOptions configure [NewStream]. Nil means the zero StreamOptions.
type StreamOptions struct {
	// MaxMessage is how many bytes a message may have. A longer one costs an
	// error, not the stream. 0 means [DefaultMaxMessage].
	MaxMessage int
	// Close is called by the stream's Close, once. Nil means that reader and
	// writer are left open, as the process's own must be.
	Close func() error
}

// NewStream makes a stream of lines. Blank lines, carriage returns at the end of
// a line and a byte order mark at the start are skipped. The first line must be
// JSON, or the stream ends: its peer speaks another protocol, such as HTTP.
//
// What is written waits in a buffer as long as a complete line waits to be read:
// a batch of requests is answered with few writes, a single one at once. A peer
// that does not read keeps those who write waiting, but never who reads.
func NewStream(r io.Reader, w io.Writer, opts *StreamOptions) mcp.Stream {
	s := newStream(r, w, opts)
	s.wary = true
	return s
}

func newStream(r io.Reader, w io.Writer, opts *StreamOptions) *stream {
	s := &stream{w: w, r: bufio.NewReaderSize(r, readSize)}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.MaxMessage = cmp.Or(s.opts.MaxMessage, DefaultMaxMessage)
	s.written.L = &s.mu
	return s
}

const (
	readSize  = 64 << 10
	flushSize = 64 << 10 // more than this is not held back
	keepSize  = 1 << 20  // a buffer that grew beyond is let go
)

type stream struct {
	opts  StreamOptions
	r     *bufio.Reader
	begun bool  // the first line is behind us
	wary  bool  // the first message is not behind us, and has to be JSON
	ended error // why nothing more is read

	interrupts interrupter // of who waits for r; nil if nothing interrupts him
	part       []byte      // of a line whose reader was interrupted
	tooLong    *lostLine   // and that line is; nil if it is not

	mu      sync.Mutex // not held while writing
	w       io.Writer
	out     []byte // accepted, not written
	spare   []byte // memory for out
	rest    *time.Timer
	more    bool      // a complete line waits to be read: whoever answers it writes
	writing bool      // somebody writes, and will write what is added meanwhile
	written sync.Cond // some of out was written
	err     error     // of writing
	close   sync.Once
}

func (s *stream) Read(ctx context.Context) ([]byte, error) {
	if s.ended != nil {
		return nil, s.ended
	}
	line, err := s.nonBlank(ctx)
	if s.wary {
		s.wary = false
		return s.beginning(line, err)
	}
	return line, err
}

func (s *stream) nonBlank(ctx context.Context) ([]byte, error) {
	for {
		line, err := s.line(ctx)
		if err != nil {
			return nil, err
		}
		if line = s.trim(line); len(line) > 0 {
			return line, nil
		}
	}
}

// Interruptible is what [mcp.Stream] says of it.
func (s *stream) Interruptible() bool { return s.interrupts != nil }

func (s *stream) trim(line []byte) []byte {
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return bytes.TrimSpace(line)
}

// line returns the next line in memory of its own.
func (s *stream) line(ctx context.Context) ([]byte, error) {
	if s.lineWaits() {
		return s.collectNow()
	}
	s.block()
	if s.interrupts == nil || ctx.Done() == nil {
		return s.collectNow()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	stop := interruptWhenDone(ctx, s.interrupts)
	line, err := s.collectNow()
	if stop(); ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		err = context.Cause(ctx)
	}
	return line, err
}

// collectNow is collect, after which it is known whether another line waits.
func (s *stream) collectNow() ([]byte, error) {
	line, err := s.collect()
	s.setMore(s.lineWaits())
	return line, err
}

func (s *stream) lineWaits() bool {
	waiting, _ := s.r.Peek(s.r.Buffered())
	return bytes.IndexByte(waiting, '\n') >= 0
}

// collect reads up to a line's end. What is too long is read and dropped. What it has
// of a line when reading fails it keeps: who was interrupted comes back, or another.
func (s *stream) collect() ([]byte, error) {
	for {
		part, err := s.r.ReadSlice('\n')
		if s.tooLong == nil && len(s.part)+len(part) > s.opts.MaxMessage+1 {
			s.tooLong = new(lostLine)
			s.tooLong.add(s.part)
			s.part = nil
		}
		if s.tooLong != nil {
			s.tooLong.add(part)
		} else {
			s.part = append(s.part, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(s.part) == 0 && s.tooLong == nil):
			return nil, err
		}
		return s.finish()
	}
}

// finish returns the line that was collected.
func (s *stream) finish() ([]byte, error) {
	line, tooLong := s.part, s.tooLong
	s.part, s.tooLong = nil, nil
	if tooLong != nil {
		err := mcp.Errorf(mcp.CodeInvalidRequest, "a message is longer than %d bytes", s.opts.MaxMessage)
		return nil, mcp.Unreadable(tooLong.head, tooLong.tail, err)
	}
	return line, nil
}

// lostLine is what is kept of a line that is too long: enough to see whose it is.
type lostLine struct{ head, tail []byte }

// excerptSize is how much is kept of either end.
const excerptSize = 1 << 10

func (l *lostLine) add(part []byte) {
	l.head = append(l.head, part[:min(len(part), excerptSize-len(l.head))]...)
	l.tail = append(l.tail, part[max(len(part)-excerptSize, 0):]...)
	l.tail = slices.Delete(l.tail, 0, max(len(l.tail)-excerptSize, 0))
}

// block is called before the reader waits. What is left then, because the last
// line had no answer, somebody else writes.
func (s *stream) block() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more = false
	if len(s.out) > 0 && !s.writing {
		go s.flushRest()
	}
}

// moment is how long what was held back waits for the answer to the last line that
// was waiting.
const moment = time.Millisecond

// setMore says whether a line waits. If none does any more, what was held back goes
// out with the next answer, or soon.
func (s *stream) setMore(more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more = more
	switch {
	case more || len(s.out) == 0:
	case s.rest == nil:
		s.rest = time.AfterFunc(moment, s.flushRest)
	default:
		s.rest.Reset(moment)
	}
}

func (s *stream) flushRest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

func (s *stream) Write(_ context.Context, message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	start := len(s.out)
	s.out = append(s.out, message...)
	inOneLine(s.out[start:])
	s.out = append(s.out, '\n')
	if !s.more || len(s.out) > flushSize {
		s.flush()
	}
	return s.err
}

// inOneLine takes the line breaks out of a JSON message, where they can only be
// white space: of raw JSON that was passed on as it was written.
func inOneLine(message []byte) {
	for _, end := range []byte("\n\r") {
		for rest := message; ; {
			i := bytes.IndexByte(rest, end)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}

// flush writes what is there. If somebody else is at it, it waits only as long as
// too much is left. The lock is let go meanwhile: two peers of which each writes
// more than the other has room for must still be able to read.
func (s *stream) flush() {
	for s.writing {
		if len(s.out) <= flushSize {
			return
		}
		s.written.Wait()
	}
	s.writing = true
	for len(s.out) > 0 && s.err == nil {
		out := s.out
		s.out, s.spare = s.spare[:0], nil
		s.mu.Unlock()
		_, err := s.w.Write(out)
		s.mu.Lock()
		s.err = err
		if cap(out) <= keepSize {
			s.spare = out
		}
		s.written.Broadcast()
	}
	s.writing = false
	s.written.Broadcast()
}

func (s *stream) Close() (err error) {
	s.mu.Lock()
	s.more = false
	for s.writing && s.opts.Close == nil { // whom nothing interrupts is waited for
		s.written.Wait()
	}
	if !s.writing {
		s.flush()
	}
	s.mu.Unlock()
	if s.opts.Close != nil {
		s.close.Do(func() { err = s.opts.Close() })
	}
	return err
}

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
	"sync"

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
// a line and a byte order mark at the start are skipped.
//
// What is written waits in a buffer as long as a complete line waits to be read:
// a batch of requests is answered with few writes, a single one at once.
func NewStream(r io.Reader, w io.Writer, opts *StreamOptions) mcp.Stream {
	s := &stream{w: w, r: bufio.NewReaderSize(r, readSize)}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.MaxMessage = cmp.Or(s.opts.MaxMessage, DefaultMaxMessage)
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
	begun bool // the first line is behind us

	mu      sync.Mutex
	w       io.Writer
	out     []byte // written, not flushed
	blocked bool   // the reader waits, or has come to the end: nobody will flush later
	err     error  // of writing
	close   sync.Once
}

func (s *stream) Read(context.Context) ([]byte, error) {
	for {
		line, err := s.line()
		if err != nil {
			return nil, err
		}
		if line = s.trim(line); len(line) > 0 {
			return line, nil
		}
	}
}

func (s *stream) trim(line []byte) []byte {
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return bytes.TrimSpace(line)
}

// line returns the next line in memory of its own.
func (s *stream) line() ([]byte, error) {
	if waiting, _ := s.r.Peek(s.r.Buffered()); bytes.IndexByte(waiting, '\n') < 0 {
		s.block()
	}
	line, err := s.collect()
	if err == nil || isTooLong(err) {
		s.unblock()
	}
	return line, err
}

// collect reads up to a line's end. What is too long is read and dropped.
func (s *stream) collect() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := s.r.ReadSlice('\n')
		if len(line)+len(part) > s.opts.MaxMessage+1 {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !tooLong):
			return nil, err
		case tooLong:
			return nil, mcp.Errorf(mcp.CodeInvalidRequest, "a message is longer than %d bytes", s.opts.MaxMessage)
		}
		return line, nil
	}
}

func isTooLong(err error) bool {
	var coded *mcp.Error
	return errors.As(err, &coded)
}

// block is called before the reader waits: what is answered already goes out.
func (s *stream) block() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = true
	s.flush()
}

func (s *stream) unblock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = false
}

func (s *stream) Write(_ context.Context, message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.out = append(append(s.out, message...), '\n')
	if s.blocked || len(s.out) > flushSize {
		s.flush()
	}
	return s.err
}

func (s *stream) flush() {
	if len(s.out) == 0 || s.err != nil {
		return
	}
	_, s.err = s.w.Write(s.out)
	s.out = s.out[:0]
	if cap(s.out) > keepSize {
		s.out = nil
	}
}

func (s *stream) Close() (err error) {
	s.mu.Lock()
	s.flush()
	s.blocked = true
	s.mu.Unlock()
	if s.opts.Close != nil {
		s.close.Do(func() { err = s.opts.Close() })
	}
	return err
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp"
)

// A peer that begins with another protocol may be a web browser: a page can send any
// body to any port, below the head of an HTTP request that it cannot change. Reading
// past such a head would run the tools that the body names.
var errOtherProtocol = errors.New("the first line is not a JSON message: the peer speaks another protocol")

var errNoMessage = errors.New("no message came in time")

// beginning checks the first line of a stream, which it gets without white space. The
// error of a line that is not JSON ends the stream with the Read after it.
func (s *stream) beginning(line []byte, err error) ([]byte, error) {
	var coded *mcp.Error
	switch {
	case err == nil:
		if syntax := jsonscan.Valid(line, 0); syntax != nil {
			s.ended = fmt.Errorf("mcpstdio: %w", errOtherProtocol)
			return nil, mcp.Errorf(mcp.CodeParseError, "malformed JSON: %w", syntax)
		}
	case errors.As(err, &coded): // it is too long
		s.ended = fmt.Errorf("mcpstdio: %w", errOtherProtocol)
	}
	return line, err
}

// blanks are the bytes of white space and of a byte order mark.
const blanks = " \t\r\n\xef\xbb\xbf"

// An openingReader reads a connection that was just accepted. It fails at the first byte
// that begins no message, and when the first line takes too long.
type openingReader struct {
	conn    net.Conn
	started bool // with a message
	done    bool // with its first line
}

func newOpeningReader(conn net.Conn, timeout time.Duration) *openingReader {
	_ = conn.SetReadDeadline(time.Now().Add(timeout))
	return &openingReader{conn: conn}
}

// Read implements [io.Reader].
func (r *openingReader) Read(b []byte) (int, error) {
	n, err := r.conn.Read(b)
	if r.done {
		return n, err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, errNoMessage
	}
	read := b[:n]
	if !r.started {
		for len(read) > 0 && strings.IndexByte(blanks, read[0]) >= 0 {
			read = read[1:]
		}
		r.started = len(read) > 0
		if r.started && read[0] != '{' && read[0] != '[' {
			return 0, errOtherProtocol
		}
	}
	if bytes.IndexByte(read, '\n') >= 0 {
		r.done = true
		_ = r.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}

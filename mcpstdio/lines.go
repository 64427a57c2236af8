// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/go-psi/psi/mcp/transport"
)

const readSize = 64 << 10

// A lineReader reads messages, one per line.
type lineReader struct {
	r          *bufio.Reader
	maxMessage int
	started    bool // the first line has been read; only that may begin with a byte order mark
}

// newLineReader returns a reader of messages of up to maxMessage bytes. 0 means
// DefaultMaxMessage, negative no limit.
func newLineReader(r io.Reader, maxMessage int) *lineReader {
	switch {
	case maxMessage == 0:
		maxMessage = DefaultMaxMessage
	case maxMessage < 0:
		maxMessage = math.MaxInt
	}
	return &lineReader{r: bufio.NewReaderSize(r, readSize), maxMessage: maxMessage}
}

// readMessage returns the next line that is not blank.
func (l *lineReader) readMessage() ([]byte, error) {
	for {
		if line, err := l.readLine(); err != nil || len(line) > 0 {
			return line, err
		}
	}
}

// readLine returns the next line, which may be blank, without the white space around it.
// The caller owns the returned slice. A line that is too long is read to its end and
// reported as a [*transport.MessageError].
func (l *lineReader) readLine() ([]byte, error) {
	var line []byte
	var dropped *excerpts // the ends of a line that is too long, or nil
	for {
		part, err := l.r.ReadSlice('\n')
		if dropped == nil && len(line)+len(part)-len("\n") > l.maxMessage {
			dropped = new(excerpts)
			dropped.add(line)
			line = nil
		}
		if dropped != nil {
			dropped.add(part)
		} else {
			line = append(line, part...)
		}
		switch atEnd := errors.Is(err, io.EOF) && (len(line) > 0 || dropped != nil); {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !atEnd:
			return nil, err
		case dropped != nil:
			err := fmt.Errorf("a message is longer than %d bytes", l.maxMessage)
			return nil, transport.Unreadable(dropped.head, dropped.tail, transport.CodeInvalidRequest, err)
		}
		return l.trimLine(line), nil
	}
}

func (l *lineReader) trimLine(line []byte) []byte {
	if !l.started {
		l.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return bytes.TrimSpace(line)
}

// hasLine reports whether a complete line is buffered.
func (l *lineReader) hasLine() bool {
	buffered, _ := l.r.Peek(l.r.Buffered())
	return bytes.IndexByte(buffered, '\n') >= 0
}

// excerptSize is the number of bytes kept from each end of a line that is too long: enough
// to find the ID and the method.
const excerptSize = 1 << 10

// excerpts are the two ends of a line that is too long.
type excerpts struct{ head, tail []byte }

func (e *excerpts) add(part []byte) {
	e.head = append(e.head, part[:min(len(part), excerptSize-len(e.head))]...)
	e.tail = append(e.tail, part[max(len(part)-excerptSize, 0):]...)
	e.tail = slices.Delete(e.tail, 0, max(len(e.tail)-excerptSize, 0))
}

// A lineWriter writes messages, one per line, without buffering. Unlike the writing half of
// [NewStream], it aborts a write when a context is done, if the file or connection supports
// deadlines (pipes on Windows do not), and it can be closed during a write.
type lineWriter struct {
	w    deadlineWriter
	turn chan struct{} // holds a token while no goroutine writes; a wait for it can be cancelled
	buf  []byte        // starts with the rest of a line that was written in part; guarded by turn
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

// writeMessage writes a message. If ctx is done first, it returns the cause of ctx. It has
// then written either nothing of the message, or the beginning of its line, which the next
// write completes.
func (l *lineWriter) writeMessage(ctx context.Context, message []byte) error {
	select {
	case <-l.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { l.turn <- struct{}{} }()
	defer l.interruptWhenDone(ctx)()
	rest := len(l.buf)
	l.buf = append(l.buf, message...)
	removeLineBreaks(l.buf[rest:])
	l.buf = append(l.buf, '\n')
	n, err := l.w.Write(l.buf)
	if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil {
		err = context.Cause(ctx)
		if n <= rest {
			l.buf = l.buf[:rest] // nothing of the message was written
		}
	}
	l.keepUnwritten(n)
	return err
}

func (l *lineWriter) keepUnwritten(written int) {
	if written == len(l.buf) && cap(l.buf) > keepSize {
		l.buf = nil
		return
	}
	l.buf = l.buf[:copy(l.buf, l.buf[written:])]
}

// interruptWhenDone makes a write fail when ctx is done, until stop is called.
func (l *lineWriter) interruptWhenDone(ctx context.Context) (stop func()) {
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

// close closes the file, even during a write. It may be called more than once.
func (l *lineWriter) close() { _ = l.w.Close() }

// removeLineBreaks replaces line breaks in a JSON message, which raw JSON from elsewhere
// may contain, by spaces. They are always white space, because JSON strings cannot contain them.
func removeLineBreaks(message []byte) {
	for i, b := range message {
		if b == '\n' || b == '\r' {
			message[i] = ' '
		}
	}
}

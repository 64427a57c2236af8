// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// eventReader reads an event stream as the HTML standard has it (server-sent
// events, 9.2.6), in time proportional to its length however it is cut into
// pieces.
//
// It is not go-sse's Read, which tells neither when to come back nor, for events
// that are too long, anything but the end of the stream, and which looks at the
// beginning of an event again for every piece of it that arrives.
type eventReader struct {
	in    *bufio.Reader
	limit int64

	begun  bool   // something has been read
	skipLF bool   // the line before ended in CR, to which LF would belong
	line   []byte // the current one
	long   bool   // it was longer than the limit, and is cut off
	tail   []byte // the last of what was cut off
}

// event is one event. Other than in the standard, one without data is an event,
// and id is that of this event only.
type event struct {
	kind    string
	id      string // "" if it has none
	data    []byte // owned by who asked for the event
	retry   time.Duration
	tooLong bool // the data is missing, but for its head and its tail
	head    []byte
	tail    []byte
	cut     bool // the stream ended in it

	fields bool // there was a field that is known
	filled bool // there was a data field
}

func newEventReader(r io.Reader, limit int64) *eventReader {
	return &eventReader{in: bufio.NewReader(r), limit: limit}
}

// next returns io.EOF at the end of the stream. An event that the end cuts short is
// an event if what is missing is nothing but line ends; then a message in it was
// cut is for whoever parses it to see.
func (r *eventReader) next() (event, error) {
	var e event
	for {
		err := r.readLine()
		switch {
		case err == io.EOF: //nolint:errorlint // readers return it bare
			if len(r.line) > 0 && bytes.HasPrefix(r.line, []byte("data:")) {
				r.field(&e)
			}
			if e.fields {
				e.cut = true
				return e, nil
			}
			return e, err
		case err != nil:
			return e, err
		case len(r.line) > 0:
			r.field(&e)
		case e.fields:
			return e, nil
		}
	}
}

// field takes the current line.
func (r *eventReader) field(e *event) {
	name, value, _ := bytes.Cut(r.line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		r.data(e, value)
	case "event":
		e.kind = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.id = string(value)
		}
	case "retry":
		e.retry = retryDelay(value)
	default:
		return
	}
	e.fields = true
}

func (r *eventReader) data(e *event, value []byte) {
	if e.tooLong = e.tooLong || r.long || int64(len(e.data)+len(value)) > r.limit; e.tooLong {
		e.lose(value, r.tail)
		return
	}
	switch {
	case !e.filled && cap(r.line) > keepLine:
		e.data, r.line = value, nil // a long line is given away, not copied
	case e.filled:
		e.data = append(append(e.data, '\n'), value...)
	default:
		e.data = append(e.data, value...)
	}
	e.filled = true
}

// excerpt is how much is kept of either end of data that is too long: enough to see to
// what it is the answer.
const excerpt = 1 << 10

// lose drops data that is too long, but for its ends. The last line of it is value, and
// then tail if that is longer than a line may be.
func (e *event) lose(value, tail []byte) {
	if e.head == nil {
		e.head = bytes.Clone(value[:min(len(value), excerpt)])
		if e.filled {
			e.head = bytes.Clone(e.data[:min(len(e.data), excerpt)])
		}
		e.data = nil
	}
	e.tail = append(bytes.Clone(value[max(len(value)-excerpt, 0):]), tail...)
}

// maxRetry bounds the delay that a server can ask for.
const maxRetry = time.Hour

// retryDelay reads milliseconds in ASCII digits; anything else is no field.
func retryDelay(value []byte) time.Duration {
	ms, err := strconv.ParseUint(string(value), 10, 63)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(ms, uint64(maxRetry/time.Millisecond))) * time.Millisecond
}

// readLine reads a line, which ends in LF, CR or both. With an error, the line is
// what came before it.
func (r *eventReader) readLine() error {
	r.line, r.tail, r.long = r.line[:0], r.tail[:0], false
	for {
		piece, err := r.peek()
		if err != nil {
			return err
		}
		n := lineEnd(piece)
		r.add(piece[:min(n, len(piece))])
		if n < len(piece) {
			r.skipLF = piece[n] == '\r'
			_, err := r.in.Discard(n + 1)
			return err
		}
		if _, err := r.in.Discard(n); err != nil {
			return err
		}
	}
}

// keepLine is up to which size the space of a line is used again.
const keepLine = 64 << 10

// peek waits until there is something to read and returns what there is.
func (r *eventReader) peek() ([]byte, error) {
	if !r.begun {
		r.begun = true
		if mark, _ := r.in.Peek(1); len(mark) == 1 && mark[0] == byteOrderMark[0] {
			if mark, _ := r.in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
				_, _ = r.in.Discard(len(byteOrderMark)) // it is there
			}
		}
	}
	for {
		if _, err := r.in.Peek(1); err != nil {
			return nil, err
		}
		piece, _ := r.in.Peek(r.in.Buffered()) // it is there
		if !r.skipLF {
			return piece, nil
		}
		r.skipLF = false
		if piece[0] != '\n' {
			return piece, nil
		}
		_, _ = r.in.Discard(1) // it is there
	}
}

const byteOrderMark = "\xEF\xBB\xBF"

// lineEnd is where the line in piece ends, len(piece) if it goes on.
func lineEnd(piece []byte) int {
	n := bytes.IndexByte(piece, '\n')
	if n < 0 {
		n = len(piece)
	}
	if cr := bytes.IndexByte(piece[:n], '\r'); cr >= 0 {
		return cr
	}
	return n
}

// add appends to the line, of which no more is kept than the longest field needs.
func (r *eventReader) add(piece []byte) {
	if room := max(r.limit+int64(len("data: "))-int64(len(r.line)), 0); int64(len(piece)) > room {
		r.long = true
		r.tail = append(r.tail, piece[room:]...)
		r.tail = append(r.tail[:0], r.tail[max(len(r.tail)-excerpt, 0):]...)
		piece = piece[:room]
	}
	r.line = append(r.line, piece...)
}

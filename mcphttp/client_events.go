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

// eventReader reads an event stream as defined by the HTML standard (server-sent events,
// 9.2.6), in time proportional to its length, no matter how it is split into reads.
//
// It is not built on go-sse's Read, which does not report the retry field, reports an event
// that is too long as the end of the stream, and rescans the start of an event for every
// piece of it that arrives.
type eventReader struct {
	in    *bufio.Reader
	limit int64 // maximum size of the data of an event, in bytes

	hasStarted bool   // something has been read
	skipLF     bool   // the previous line ended in CR, which an LF may follow
	line       []byte // the current line
	isLong     bool   // line exceeded the limit and is truncated
	tail       []byte // the end of the part that was cut off
}

// event is one event. Unlike in the standard, an event may have no data, and id applies to
// this event only.
type event struct {
	kind      string
	id        string // "" if it has none
	data      []byte // owned by the caller of next
	retry     time.Duration
	isTooLong bool // data is nil; head and tail hold its ends
	head      []byte
	tail      []byte
	isCut     bool // the stream ended within the event

	hasFields bool // the event has a known field
	hasData   bool // the event has a data field
}

func newEventReader(r io.Reader, limit int64) *eventReader {
	return &eventReader{in: bufio.NewReader(r), limit: limit}
}

// next returns the next event, or io.EOF at the end of the stream. An event cut short by
// the end of the stream is returned as well, with isCut set. It is complete if only line
// ends are missing, which the parser of its message can tell.
func (r *eventReader) next() (event, error) {
	var e event
	for {
		err := r.readLine()
		switch {
		case err == io.EOF: //nolint:errorlint // readers return it bare
			if len(r.line) > 0 && bytes.HasPrefix(r.line, []byte("data:")) {
				r.parseField(&e)
			}
			if e.hasFields {
				e.isCut = true
				return e, nil
			}
			return e, err
		case err != nil:
			return e, err
		case len(r.line) > 0:
			r.parseField(&e)
		case e.hasFields:
			return e, nil
		}
	}
}

// parseField parses the current line.
func (r *eventReader) parseField(e *event) {
	name, value, _ := bytes.Cut(r.line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		r.appendData(e, value)
	case "event":
		e.kind = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.id = string(value)
		}
	case "retry":
		e.retry = parseRetry(value)
	default:
		return
	}
	e.hasFields = true
}

func (r *eventReader) appendData(e *event, value []byte) {
	if e.isTooLong = e.isTooLong || r.isLong || int64(len(e.data)+len(value)) > r.limit; e.isTooLong {
		e.dropData(value, r.tail)
		return
	}
	switch {
	case !e.hasData && cap(r.line) > maxReusedLine:
		e.data, r.line = value, nil // hand over a long line instead of copying it
	case e.hasData:
		e.data = append(append(e.data, '\n'), value...)
	default:
		e.data = append(e.data, value...)
	}
	e.hasData = true
}

// excerpt is the number of bytes kept from each end of data that is too long: enough to see
// which request it answers.
const excerpt = 1 << 10

// dropData drops data that is too long, except for its ends. value is the last line of the
// data, followed by tail if that line was truncated.
func (e *event) dropData(value, tail []byte) {
	if e.head == nil {
		e.head = bytes.Clone(value[:min(len(value), excerpt)])
		if e.hasData {
			e.head = bytes.Clone(e.data[:min(len(e.data), excerpt)])
		}
		e.data = nil
	}
	e.tail = append(bytes.Clone(value[max(len(value)-excerpt, 0):]), tail...)
}

// maxRetry bounds the delay that a server may request.
const maxRetry = time.Hour

// parseRetry parses a number of milliseconds in ASCII digits. It returns 0 for anything else.
func parseRetry(value []byte) time.Duration {
	ms, err := strconv.ParseUint(string(value), 10, 63)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(ms, uint64(maxRetry/time.Millisecond))) * time.Millisecond
}

// readLine reads a line, which ends in LF, CR or both. If it returns an error, r.line holds
// what was read before the error.
func (r *eventReader) readLine() error {
	r.line, r.tail, r.isLong = r.line[:0], r.tail[:0], false
	for {
		piece, err := r.peek()
		if err != nil {
			return err
		}
		n := lineEnd(piece)
		r.appendLine(piece[:min(n, len(piece))])
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

// maxReusedLine is the maximum size, in bytes, of a line buffer that is reused.
const maxReusedLine = 64 << 10

// peek waits for input and returns what is buffered, without consuming it. It skips a byte
// order mark at the start and the LF of a CRLF.
func (r *eventReader) peek() ([]byte, error) {
	if !r.hasStarted {
		r.hasStarted = true
		if mark, _ := r.in.Peek(1); len(mark) == 1 && mark[0] == byteOrderMark[0] {
			if mark, _ := r.in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
				_, _ = r.in.Discard(len(byteOrderMark)) // it is buffered
			}
		}
	}
	for {
		if _, err := r.in.Peek(1); err != nil {
			return nil, err
		}
		piece, _ := r.in.Peek(r.in.Buffered()) // it is buffered
		if !r.skipLF {
			return piece, nil
		}
		r.skipLF = false
		if piece[0] != '\n' {
			return piece, nil
		}
		_, _ = r.in.Discard(1) // it is buffered
	}
}

const byteOrderMark = "\xEF\xBB\xBF"

// lineEnd returns the index at which the line in piece ends, or len(piece) if the line continues.
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

// appendLine appends to the line, up to the length of the longest permitted field.
func (r *eventReader) appendLine(piece []byte) {
	if room := max(r.limit+int64(len("data: "))-int64(len(r.line)), 0); int64(len(piece)) > room {
		r.isLong = true
		r.tail = append(r.tail, piece[room:]...)
		r.tail = append(r.tail[:0], r.tail[max(len(r.tail)-excerpt, 0):]...)
		piece = piece[:room]
	}
	r.line = append(r.line, piece...)
}

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

// eventReader reads an event stream as the HTML standard defines it (server-sent events,
// 9.2.6), in time proportional to its length, in whatever pieces it arrives.
//
// It is not built on go-sse's Read, which does not report the retry field, reports an
// event that is too long as the end of the stream, and scans the start of an event again
// for every piece of it that arrives.
type eventReader struct {
	in    *bufio.Reader
	limit int64 // bytes of the data of an event

	hasStarted bool   // something has been read
	skipLF     bool   // the line before ended in CR, which an LF may follow
	line       []byte // the current one
	isLong     bool   // it was longer than the limit, and is truncated
	tail       []byte // the end of what was truncated
}

// event is one event. Unlike in the standard, an event may have no data, and id is that of
// this event only.
type event struct {
	kind      string
	id        string // "" if it has none
	data      []byte // owned by the caller of next
	retry     time.Duration
	isTooLong bool // there is no data, only its head and its tail
	head      []byte
	tail      []byte
	isCut     bool // the stream ended in it

	hasFields bool // there was a known field
	hasData   bool // there was a data field
}

func newEventReader(r io.Reader, limit int64) *eventReader {
	return &eventReader{in: bufio.NewReader(r), limit: limit}
}

// next returns the next event, or io.EOF at the end of the stream. An event that the end
// cuts short is returned as well, with isCut: it is complete if only line ends are missing,
// which the parser of its message can tell.
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
		e.data, r.line = value, nil // a long line is given away, not copied
	case e.hasData:
		e.data = append(append(e.data, '\n'), value...)
	default:
		e.data = append(e.data, value...)
	}
	e.hasData = true
}

// excerpt is how many bytes are kept of either end of data that is too long: enough to see
// which request it answers.
const excerpt = 1 << 10

// dropData drops data that is too long, except for its ends. Its last line is value,
// followed by tail if that line is longer than a line may be.
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

// maxRetry bounds the delay that a server may ask for.
const maxRetry = time.Hour

// parseRetry parses milliseconds in ASCII digits. It returns 0 for anything else.
func parseRetry(value []byte) time.Duration {
	ms, err := strconv.ParseUint(string(value), 10, 63)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(ms, uint64(maxRetry/time.Millisecond))) * time.Millisecond
}

// readLine reads a line, which ends in LF, CR or both. If it returns an error, the line is
// what came before that.
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

// maxReusedLine is the size of a line, in bytes, up to which its memory is reused.
const maxReusedLine = 64 << 10

// peek waits until there is something to read and returns it. It skips a byte order mark
// at the start and the LF of a CRLF.
func (r *eventReader) peek() ([]byte, error) {
	if !r.hasStarted {
		r.hasStarted = true
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

// lineEnd returns the index at which the line in piece ends, len(piece) if it goes on.
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

// appendLine appends to the line, up to what the longest field needs.
func (r *eventReader) appendLine(piece []byte) {
	if room := max(r.limit+int64(len("data: "))-int64(len(r.line)), 0); int64(len(piece)) > room {
		r.isLong = true
		r.tail = append(r.tail, piece[room:]...)
		r.tail = append(r.tail[:0], r.tail[max(len(r.tail)-excerpt, 0):]...)
		piece = piece[:room]
	}
	r.line = append(r.line, piece...)
}

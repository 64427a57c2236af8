// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-psi/psi/internal/strictjson"
)

// A recording is held in memory. These limits, in bytes, protect from other files: a Recorder
// writes no longer line.
const (
	maxLine = 2 * maxMessage
	maxSize = 512 << 20
)

// A Recording is a recorded conversation. It is created by [Read] and does not change. The
// zero Recording is empty.
type Recording struct{ entries []Entry }

// Entries returns the entries of the recording in order. The data that they refer to must
// not be modified.
func (r *Recording) Entries() []Entry { return slices.Clone(r.entries) }

// Read reads a recording. Its error names the line that could not be read. Blank lines are
// skipped. A line of more than 32 MiB is an error, as is a recording of more than 512 MiB.
func Read(r io.Reader) (*Recording, error) { return read(r, maxSize) }

func read(r io.Reader, limit int) (*Recording, error) {
	if r == nil {
		return nil, errors.New("recording: Read: the reader is nil")
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	rec, size, number := new(Recording), 0, 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if size += len(line); size > limit {
			return nil, fmt.Errorf("recording: line %d: the recording is larger than %d bytes", number, limit)
		}
		if len(line) == 0 {
			continue
		}
		entry, err := readEntry(line, number)
		if err != nil {
			return nil, fmt.Errorf("recording: line %d: %w", number, err)
		}
		rec.entries = append(rec.entries, entry)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("recording: line %d: it is longer than %d bytes", number+1, maxLine)
	} else if err != nil {
		return nil, fmt.Errorf("recording: line %d: %w", number+1, err)
	}
	return rec, nil
}

// readEntry parses a line.
func readEntry(line []byte, number int) (e Entry, err error) {
	if err := strictjson.Unmarshal(bytes.Clone(line), &e); err != nil {
		return e, fmt.Errorf("it is not an entry of a recording: %s", strictjson.Problem(err))
	}
	e.Line = number
	return e, e.parse()
}

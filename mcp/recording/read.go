// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-psi/psi/internal/strictjson"
)

// ReadOptions configure [Read]. Nil means the zero ReadOptions.
type ReadOptions struct {
	// MaxLine and MaxSize limit the length of a line and the size of the whole recording in
	// bytes, because a recording is held in memory. 0 or less means 32 MiB and 512 MiB.
	MaxLine, MaxSize int
}

func (o *ReadOptions) withDefaults() ReadOptions {
	var opts ReadOptions
	if o != nil {
		opts = *o
	}
	opts.MaxLine = cmp.Or(max(opts.MaxLine, 0), 32<<20)
	opts.MaxSize = cmp.Or(max(opts.MaxSize, 0), 512<<20)
	return opts
}

// A Recording is a recorded conversation. It is created by [Read] and does not change. The
// zero Recording is empty.
type Recording struct{ entries []Entry }

// Entries returns the entries of the recording in order. The data that they refer to must
// not be modified.
func (r *Recording) Entries() []Entry { return slices.Clone(r.entries) }

// Read reads a recording. Its error names the line that could not be read. Blank lines are
// skipped. Opts may be nil.
func Read(r io.Reader, opts *ReadOptions) (*Recording, error) {
	if r == nil {
		return nil, errors.New("recording: Read: the reader is nil")
	}
	o := opts.withDefaults()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, o.MaxLine)
	rec, size, number := new(Recording), 0, 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if size += len(line); size > o.MaxSize {
			return nil, fmt.Errorf("recording: line %d: the recording is larger than %d bytes; see ReadOptions.MaxSize", number, o.MaxSize)
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
		return nil, fmt.Errorf("recording: line %d: it is longer than %d bytes; see ReadOptions.MaxLine", number+1, o.MaxLine)
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

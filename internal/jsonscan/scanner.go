// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonscan

import (
	"fmt"
	"sync"
)

// DefaultMaxDepth bounds the nesting of objects and arrays where a caller does
// not choose a bound of its own.
const DefaultMaxDepth = 128

// A SyntaxError says what is wrong with the input, and where.
type SyntaxError struct {
	Offset int    // of the offending byte
	What   string // what was wrong and what was expected, without the offset
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at byte %d", e.What, e.Offset)
}

// A Scanner walks one JSON value. The zero value is not ready: call Reset.
// Slices that it returns alias the input. It is not safe for concurrent use.
type Scanner struct {
	data     []byte
	pos      int
	depth    int
	maxDepth int
	fresh    bool // an object or array was entered and has no element yet
	err      *SyntaxError
	name     []byte // the current member's name, unescaped
	names    names
}

// Reset makes s read data from its start. A maxDepth of 0 means DefaultMaxDepth.
func (s *Scanner) Reset(data []byte, maxDepth int) {
	if maxDepth <= 0 {
		maxDepth = DefaultMaxDepth
	}
	s.data, s.pos, s.depth, s.maxDepth = data, 0, 0, maxDepth
	s.fresh, s.err, s.name = false, nil, nil
	s.names.reset(data)
}

// Offset is the position of the next byte to be read. After [Scanner.Kind] it is
// where the next value starts.
func (s *Scanner) Offset() int { return s.pos }

// Since is the input from an earlier offset up to here.
func (s *Scanner) Since(offset int) []byte { return s.data[offset:s.pos:s.pos] }

// Err is the first error met, or nil.
func (s *Scanner) Err() error {
	if s.err == nil {
		return nil
	}
	return s.err
}

// Kind skips white space and tells what value comes next by its first byte:
// one of '{' '[' '"' 't' 'f' 'n', '0' for any number, 0 for anything else,
// the end of the input included.
func (s *Scanner) Kind() byte {
	s.space()
	if s.err != nil || s.pos >= len(s.data) {
		return 0
	}
	switch c := s.data[s.pos]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	default:
		return 0
	}
}

// Object enters an object, whose members [Scanner.Member] then yields.
// It reports false, with an error set, if no object comes next.
func (s *Scanner) Object() bool {
	s.space()
	if !s.enter('{', "an object") {
		return false
	}
	s.names.push()
	return true
}

// Member moves to the next member of the innermost entered object and reports
// whether there is one; its value must then be taken. At the closing brace, and
// after an error, it reports false.
func (s *Scanner) Member() bool {
	if !s.element('}', "'}'") {
		if s.err == nil {
			s.names.pop()
		}
		return false
	}
	return s.memberName()
}

// Name is the name of the current member, unescaped, valid until the next call.
func (s *Scanner) Name() []byte { return s.name }

// Array enters an array, whose elements [Scanner.Element] then yields.
func (s *Scanner) Array() bool {
	s.space()
	return s.enter('[', "an array")
}

// Element moves to the next element of the innermost entered array and reports
// whether there is one; it must then be taken.
func (s *Scanner) Element() bool { return s.element(']', "']'") }

// Value takes the next value, whatever it is, and returns its bytes. After an
// error it returns nil.
func (s *Scanner) Value() []byte {
	s.space()
	start := s.pos
	s.value()
	if s.err != nil {
		return nil
	}
	return s.data[start:s.pos:s.pos]
}

// Skip takes the next value without returning it.
func (s *Scanner) Skip() { s.space(); s.value() }

// End reports an error unless only white space is left.
func (s *Scanner) End() error {
	s.space()
	if s.err == nil && s.pos < len(s.data) {
		s.fail("unexpected data after the JSON value")
	}
	return s.Err()
}

// Valid checks that data is exactly one JSON value.
func Valid(data []byte, maxDepth int) error {
	s := Get(data, maxDepth)
	defer s.Release()
	s.Skip()
	return s.End()
}

var pool = sync.Pool{New: func() any { return new(Scanner) }}

// Get returns a scanner at the start of data, from a pool.
func Get(data []byte, maxDepth int) *Scanner {
	s := pool.Get().(*Scanner)
	s.Reset(data, maxDepth)
	return s
}

// Release gives s back to the pool; the caller must not use it afterwards.
// Slices and errors that it returned stay valid.
func (s *Scanner) Release() {
	s.Reset(nil, 0)
	pool.Put(s)
}

func (s *Scanner) fail(what string) {
	if s.err == nil {
		s.err = &SyntaxError{Offset: s.pos, What: what}
	}
}

func (s *Scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *Scanner) enter(open byte, what string) bool {
	if s.err != nil {
		return false
	}
	if s.pos >= len(s.data) || s.data[s.pos] != open {
		s.fail("expected " + what)
		return false
	}
	if s.depth++; s.depth > s.maxDepth {
		s.fail(fmt.Sprintf("nested deeper than %d levels", s.maxDepth))
		return false
	}
	s.pos++
	s.fresh = true
	return true
}

// element consumes what stands before the next element or closes the container.
func (s *Scanner) element(end byte, endName string) bool {
	if s.err != nil {
		return false
	}
	fresh := s.fresh
	s.fresh = false
	s.space()
	if s.pos >= len(s.data) {
		s.fail("unexpected end of input, expected " + endName)
		return false
	}
	switch c := s.data[s.pos]; {
	case c == end:
		s.pos++
		s.depth--
		return false
	case fresh:
		return true
	case c != ',':
		s.fail("expected ',' or " + endName)
		return false
	}
	s.pos++
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == end {
		s.fail("expected a value after ','")
		return false
	}
	return true
}

func (s *Scanner) memberName() bool {
	if s.pos >= len(s.data) || s.data[s.pos] != '"' {
		s.fail("expected a member name")
		return false
	}
	start := s.pos
	escaped := s.str()
	if s.err != nil {
		return false
	}
	name := span{start + 1, s.pos - 1}
	if escaped {
		name = s.names.keep(Unquote(s.data[start:s.pos]))
	}
	s.name = s.names.at(name)
	if !s.names.add(name) {
		s.pos = start
		s.fail(fmt.Sprintf("member %.100q stands twice in one object", s.name))
		return false
	}
	s.space()
	if s.pos >= len(s.data) || s.data[s.pos] != ':' {
		s.fail("expected ':' after a member name")
		return false
	}
	s.pos++
	return true
}

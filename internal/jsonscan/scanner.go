// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonscan

import (
	"fmt"
	"sync"
)

// DefaultMaxDepth limits the nesting of objects and arrays if the caller does not choose a limit.
const DefaultMaxDepth = 128

// A SyntaxError describes what is wrong with the input, and where.
type SyntaxError struct {
	Offset int    // of the offending byte
	What   string // what was wrong and what was expected, without the offset
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at byte %d", e.What, e.Offset)
}

// A Scanner walks one JSON value. The zero value is not ready to use: call Reset. Slices
// that it returns alias the input. It is not safe for concurrent use.
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

// Offset returns the position of the next byte to be read. After [Scanner.Kind], this is
// the start of the next value.
func (s *Scanner) Offset() int { return s.pos }

// Since returns the input from an earlier offset to the current one.
func (s *Scanner) Since(offset int) []byte { return s.data[offset:s.pos:s.pos] }

// Err returns the first error, or nil.
func (s *Scanner) Err() error {
	if s.err == nil {
		return nil
	}
	return s.err
}

// Kind skips white space and returns the kind of the next value, given by its first byte:
// one of '{' '[' '"' 't' 'f' 'n', '0' for any number, or 0 for anything else, including the
// end of the input.
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

// Object enters an object, whose members are then read with [Scanner.Member]. If the next
// value is not an object, Object sets an error and returns false.
func (s *Scanner) Object() bool {
	s.space()
	if !s.enter('{', "an object") {
		return false
	}
	s.names.push()
	return true
}

// Member moves to the next member of the innermost open object and reports whether there is
// one. The caller must then read its value. Member returns false at the closing brace, and
// after an error.
func (s *Scanner) Member() bool {
	if !s.element('}', "'}'") {
		if s.err == nil {
			s.names.pop()
		}
		return false
	}
	return s.memberName()
}

// Name returns the unescaped name of the current member. It is valid until the next call.
func (s *Scanner) Name() []byte { return s.name }

// Array enters an array, whose elements are then read with [Scanner.Element].
func (s *Scanner) Array() bool {
	s.space()
	return s.enter('[', "an array")
}

// Element moves to the next element of the innermost open array and reports whether there
// is one. The caller must then read it.
func (s *Scanner) Element() bool { return s.element(']', "']'") }

// Value reads the next value, of any kind, and returns its bytes. After an error it returns nil.
func (s *Scanner) Value() []byte {
	s.space()
	start := s.pos
	s.value()
	if s.err != nil {
		return nil
	}
	return s.data[start:s.pos:s.pos]
}

// Skip reads the next value without returning it.
func (s *Scanner) Skip() { s.space(); s.value() }

// End returns an error unless only white space is left.
func (s *Scanner) End() error {
	s.space()
	if s.err == nil && s.pos < len(s.data) {
		s.fail("unexpected data after the JSON value")
	}
	return s.Err()
}

// Valid returns an error unless data is exactly one JSON value.
func Valid(data []byte, maxDepth int) error {
	s := Get(data, maxDepth)
	defer s.Release()
	s.Skip()
	return s.End()
}

var pool = sync.Pool{New: func() any { return new(Scanner) }}

// Get returns a scanner from a pool, at the start of data.
func Get(data []byte, maxDepth int) *Scanner {
	s := pool.Get().(*Scanner)
	s.Reset(data, maxDepth)
	return s
}

// Release returns s to the pool; the caller must not use it afterwards. Slices and errors
// that it returned stay valid.
func (s *Scanner) Release() {
	s.Reset(nil, 0)
	pool.Put(s)
}

func (s *Scanner) fail(what string) {
	if s.err == nil {
		s.err = &SyntaxError{Offset: s.pos, What: what}
	}
}

// space skips white space. It is inlined; most messages have none.
func (s *Scanner) space() {
	if s.pos < len(s.data) && s.data[s.pos] <= ' ' {
		s.skipSpace()
	}
}

func (s *Scanner) skipSpace() {
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

// element reads what precedes the next element, or the end of the object or array.
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
		s.fail(fmt.Sprintf("member %.100q appears twice in one object", s.name))
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonscan

import "bytes"

// Members calls yield with each member of the object at the start of data, as far as it can
// be read without parsing the values: name and value are raw and need not be valid. It is
// for input that is malformed or truncated. It takes linear time and does not recurse.
func Members(data []byte, yield func(name, value []byte)) {
	rest, ok := bytes.CutPrefix(trim(data), []byte("{"))
	for ok {
		rest = trim(rest)
		end := stringEnd(rest)
		if end < 0 {
			return
		}
		name := rest[1 : end-1]
		if rest, ok = bytes.CutPrefix(trim(rest[end:]), []byte(":")); !ok {
			return
		}
		var value []byte
		if value, rest, ok = cutValue(rest); value == nil {
			return
		}
		yield(name, value)
	}
}

// Elements is like [Members] for the elements of the array at the start of data. It stops
// when yield returns false.
func Elements(data []byte, yield func(value []byte) bool) {
	rest, ok := bytes.CutPrefix(trim(data), []byte("["))
	for ok {
		var value []byte
		if value, rest, ok = cutValue(rest); value == nil || !yield(value) {
			return
		}
	}
}

// LastMembers calls yield with the last members of the object at the end of data, starting
// with the last, as long as their values are numbers, literals or strings without escapes.
// The start of the object may be missing.
func LastMembers(data []byte, yield func(name, value []byte)) {
	rest, ok := bytes.CutSuffix(trim(data), []byte("}"))
	for ok {
		var name, value []byte
		if rest, value = cutLastScalar(trim(rest)); value == nil {
			return
		}
		if rest, ok = bytes.CutSuffix(trim(rest), []byte(":")); !ok {
			return
		}
		rest = trim(rest)
		if rest, name = cutLastScalar(rest); len(name) < 2 || name[0] != '"' {
			return
		}
		rest, ok = bytes.CutSuffix(trim(rest), []byte(","))
		if !ok && !bytes.HasSuffix(rest, []byte("{")) {
			return
		}
		yield(name[1:len(name)-1], value)
	}
}

func trim(data []byte) []byte { return bytes.Trim(data, " \t\r\n") }

// stringEnd returns the end of the string at the start of data, or -1 if there is none.
func stringEnd(data []byte) int {
	if len(data) == 0 || data[0] != '"' {
		return -1
	}
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// cutValue returns the value at the start of data, or nil if its end is missing, and
// whether another value follows in the same object or array.
func cutValue(data []byte) (value, rest []byte, more bool) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			n := stringEnd(data[i:])
			if n < 0 {
				return nil, nil, false
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return trim(data[:i]), nil, false
			}
		case ',':
			if depth == 0 {
				return trim(data[:i]), data[i+1:], true
			}
		}
	}
	return nil, nil, false
}

// cutLastScalar returns the scalar at the end of data, or nil if there is none, and what
// precedes it.
func cutLastScalar(data []byte) (rest, value []byte) {
	inside, quoted := bytes.CutSuffix(data, []byte(`"`))
	var start int
	if quoted {
		start = bytes.LastIndexByte(inside, '"')
		if start < 0 || bytes.IndexByte(inside[start:], '\\') >= 0 || start > 0 && inside[start-1] == '\\' {
			return nil, nil
		}
	} else {
		start = bytes.LastIndexAny(data, ":,{}[]\" \t\r\n\\") + 1
	}
	if start == len(data) {
		return nil, nil
	}
	return data[:start], data[start:]
}

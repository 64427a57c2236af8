// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import "bytes"

// withoutComments returns a copy of data in which comments and trailing commas are replaced
// with spaces, so that offsets stay the same.
func withoutComments(data []byte) []byte {
	out := bytes.Clone(data)
	comma := -1 // index of a comma followed only by white space and comments, or -1
	for i := 0; i < len(out); {
		switch c := out[i]; c {
		case '"':
			i, comma = endOfString(out, i), -1
		case '/':
			end := endOfComment(out, i)
			if end == i { // not a comment, and not JSON
				return out
			}
			blank(out[i:end])
			i = end
		case ' ', '\t', '\r', '\n':
			i++
		default:
			if (c == '}' || c == ']') && comma >= 0 {
				out[comma] = ' '
			}
			if comma = -1; c == ',' {
				comma = i
			}
			i++
		}
	}
	return out
}

// endOfString returns the index after the end of the string that begins at i.
func endOfString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// endOfComment returns the index after the end of the comment that begins at i, or i if there
// is none.
func endOfComment(data []byte, i int) int {
	rest := data[i:]
	for _, kind := range []struct {
		begin, end string
		endLength  int // number of bytes of end that belong to the comment
	}{{"//", "\n", 0}, {"/*", "*/", 2}} {
		if !bytes.HasPrefix(rest, []byte(kind.begin)) {
			continue
		}
		if end := bytes.Index(rest[2:], []byte(kind.end)); end >= 0 {
			return i + 2 + end + kind.endLength
		}
		return len(data)
	}
	return i
}

// blank replaces everything except line feeds with spaces.
func blank(data []byte) {
	for i, c := range data {
		if c != '\n' {
			data[i] = ' '
		}
	}
}

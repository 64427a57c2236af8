// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package sparse

import "sync/atomic"

// always is the number of lines that are all written. After that, only every line whose
// number is a power of two is.
const always = 16

// A Counter counts the lines about one peer. The zero Counter is ready to use. It is safe
// for concurrent use.
type Counter struct{ lines atomic.Int64 }

// Next counts a line. It returns the number of the line and whether to write it.
func (c *Counter) Next() (number int64, write bool) {
	n := c.lines.Add(1)
	return n, n <= always || n&(n-1) == 0
}

// maxExcerpt is the maximum length of the text of a peer in a log line.
const maxExcerpt = 200

// Excerpt returns the beginning of a text from a peer, for a log line.
func Excerpt(text string) string { return text[:min(len(text), maxExcerpt)] }

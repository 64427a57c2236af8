// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import "io"

// ReadUpTo is Read with a smaller limit on the size of a recording.
func ReadUpTo(r io.Reader, size int) (*Recording, error) { return read(r, size) }

// LimitMessages makes r omit messages of more than size bytes, and returns r.
func LimitMessages(r *Recorder, size int) *Recorder {
	r.maxMessage = size
	return r
}

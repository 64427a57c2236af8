// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package bufpool

import "sync"

// A Buffer is a byte slice from the pool. What is in it must not be kept beyond
// [Buffer.Put].
type Buffer struct{ B []byte }

// maxPooled keeps the rare large message from staying in memory for good. A list of a
// thousand tools is half of it.
const maxPooled = 1 << 20

var pool = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, 1<<10)} }}

// Get lends an empty buffer.
func Get() *Buffer { return pool.Get().(*Buffer) }

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.B = append(b.B, p...)
	return len(p), nil
}

// Put gives the buffer back.
func (b *Buffer) Put() {
	if cap(b.B) > maxPooled {
		return
	}
	b.B = b.B[:0]
	pool.Put(b)
}

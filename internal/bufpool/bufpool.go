// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package bufpool

import "sync"

// A Buffer is a byte slice from the pool. B must not be used after [Buffer.Put].
type Buffer struct{ B []byte }

// maxPooled is the maximum capacity of buffers in the pool. It is twice the length of a
// list of a thousand tools.
const maxPooled = 1 << 20

var pool = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, 1<<10)} }}

// Get returns an empty buffer.
func Get() *Buffer { return pool.Get().(*Buffer) }

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.B = append(b.B, p...)
	return len(p), nil
}

// Put returns the buffer to the pool.
func (b *Buffer) Put() {
	if cap(b.B) > maxPooled {
		return
	}
	b.B = b.B[:0]
	pool.Put(b)
}

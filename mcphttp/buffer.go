// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import "sync"

// buffer is a byte slice from a pool. What is in it must not be kept.
type buffer struct{ b []byte }

// maxPooled keeps the rare large message from staying in memory for good.
const maxPooled = 64 << 10

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 1<<10)} }}

func getBuffer() *buffer { return buffers.Get().(*buffer) }

func (b *buffer) put() {
	if cap(b.b) > maxPooled {
		return
	}
	b.b = b.b[:0]
	buffers.Put(b)
}

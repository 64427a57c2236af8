// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcpstdio"
)

// Tests of public advisories are named after them. docs/evidence/advisories.md lists them.

// lineOf reads as one line of a given length, without a line break.
type lineOf struct{ left int }

func (l *lineOf) Read(p []byte) (int, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), l.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	l.left -= n
	return n, nil
}

// The Ruby SDK, as a server and as a client, buffered a line until its end, which might
// never come.
func TestAdvisoryCVE_2026_63119(t *testing.T) {
	const limit, length = 1 << 20, 64 << 20
	long := &lineOf{length}
	in := io.MultiReader(strings.NewReader("1\n"), long, strings.NewReader("\n2\n"))
	s := mcpstdio.NewStream(in, io.Discard, &mcpstdio.LineOptions{MaxMessage: limit})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := messages(t, s)
	runtime.ReadMemStats(&after)
	if strings.Join(got, " ") != "1 -32600 2" || long.left != 0 {
		t.Errorf("got %q, %d bytes were not read", got, long.left)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16*limit {
		t.Errorf("a line of %d bytes took %d bytes of memory, with a limit of %d", length, took, limit)
	}
}

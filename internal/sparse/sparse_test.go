// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package sparse_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/sparse"
)

func TestCounter(t *testing.T) {
	var c sparse.Counter
	var written []int64
	for range 100 {
		if n, write := c.Next(); write {
			written = append(written, n)
		}
	}
	if len(written) != 18 || !slices.Equal(written[14:], []int64{15, 16, 32, 64}) {
		t.Errorf("wrote the lines %d", written)
	}
}

func TestExcerpt(t *testing.T) {
	for _, n := range []int{0, 199, 200, 201, 1 << 20} {
		if got := sparse.Excerpt(strings.Repeat("x", n)); len(got) != min(n, 200) {
			t.Errorf("of %d bytes, %d are left", n, len(got))
		}
	}
}

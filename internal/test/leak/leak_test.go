// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package leak

import (
	"strings"
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	before := len(goroutines())
	end := make(chan struct{})
	go func() { <-end }()
	left := wait(10 * time.Millisecond)
	if len(left) != before+1 || !strings.Contains(strings.Join(left, ""), "leak.TestWait") {
		t.Errorf("left are %q", left)
	}
	close(end)
}

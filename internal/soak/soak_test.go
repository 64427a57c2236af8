// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"strings"
	"testing"
	"time"
)

// The command finds nothing wrong in two seconds with fifty clients.
func TestSoak(t *testing.T) {
	r := soak(t.Context(), config{length: 2 * time.Second, sessions: 50, think: 50 * time.Millisecond, write: time.Second / 2, seed: 1})
	var out strings.Builder
	r.print(&out)
	t.Log("\n" + out.String())
	if len(r.problems) > 0 {
		t.Error("something was wrong")
	}
	for _, kind := range []string{"connect", "echo", "ask", "cancel", "cut", "too much", "subscribe"} {
		if r.counts[kind] == nil {
			t.Errorf("nothing of the kind %q was done", kind)
		}
	}
}

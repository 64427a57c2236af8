// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The command finds nothing wrong in two seconds with fifty clients.
func TestSoak(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprintf("replicas=%d", replicas), func(t *testing.T) {
			r := soak(t.Context(), config{
				length: 2 * time.Second, sessions: 50, replicas: replicas, think: 50 * time.Millisecond, write: 2 * time.Second, seed: 1,
			})
			var out strings.Builder
			r.print(&out)
			t.Log("\n" + out.String())
			if len(r.problems) > 0 {
				t.Error("something was wrong")
			}
			kinds := []string{"connect", "echo", "ask", "task", "cancel", "cut", "too much", "subscribe"}
			if replicas > 1 {
				kinds = append(kinds, "replace a replica")
			}
			for _, kind := range kinds {
				if r.counts[kind] == nil {
					t.Errorf("nothing of the kind %q was done", kind)
				}
			}
			if replicas > 1 && r.moves == 0 {
				t.Error("no session went on at another replica")
			}
		})
	}
}

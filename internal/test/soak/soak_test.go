// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The command finds nothing wrong with fifty clients in the time it takes to perform every
// kind of operation once: two seconds, or longer on a busy machine.
func TestSoak(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprintf("replicas=%d", replicas), func(t *testing.T) {
			for length := 2 * time.Second; ; length *= 2 {
				r := soak(t.Context(), config{
					length: length, sessions: 50, replicas: replicas, think: 50 * time.Millisecond, write: 2 * time.Second, seed: 1,
				})
				var out strings.Builder
				r.print(&out)
				t.Log("\n" + out.String())
				if len(r.problems) > 0 {
					t.Fatal("something was wrong")
				}
				missing := notDone(r, replicas)
				if len(missing) == 0 {
					break
				}
				if length > 30*time.Second {
					t.Fatalf("not done in %v: %q", length, missing)
				}
			}
		})
	}
}

// notDone returns the kinds of operations that did not happen.
func notDone(r *report, replicas int) (missing []string) {
	kinds := []string{"connect", "echo", "ask", "task", "cancel", "cut", "too much", "subscribe"}
	if replicas > 1 {
		kinds = append(kinds, "replace a replica")
	}
	for _, kind := range kinds {
		if r.counts[kind] == nil {
			missing = append(missing, kind)
		}
	}
	if replicas > 1 && r.moves == 0 {
		missing = append(missing, "go on at another replica")
	}
	return missing
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// NoLeaks fails the test if goroutines that were started after the call are still
// running when the test ends. Call it first: cleanup functions run last to first.
// Goroutines that are about to end get a moment to do so. Do not use it in parallel
// tests: it counts the goroutines of the others.
func NoLeaks(tb testing.TB) {
	tb.Helper()
	before := goroutines()
	tb.Cleanup(func() {
		var leaked []string
		for pause := time.Microsecond; pause < patience; pause *= 2 {
			if leaked = startedSince(before); len(leaked) == 0 {
				return
			}
			<-time.After(pause)
		}
		tb.Errorf("mcptest: %d goroutines leaked:\n\n%s", len(leaked), strings.Join(leaked, "\n\n"))
	})
}

// patience bounds the last pause; all pauses together take up to twice as long.
const patience = time.Second

// goroutines returns the stacks of all goroutines except the calling one, by names such
// as "goroutine 7".
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for n := runtime.Stack(buf, true); n == len(buf); n = runtime.Stack(buf, true) {
		buf = make([]byte, 2*len(buf))
	}
	text := strings.TrimRight(string(buf), "\x00\n")
	stacks := map[string]string{}
	for _, stack := range strings.Split(text, "\n\n")[1:] {
		id, _, _ := strings.Cut(stack, " [")
		stacks[id] = stack
	}
	return stacks
}

// startedSince returns the stacks of new goroutines, except those of package testing.
func startedSince(before map[string]string) []string {
	var started []string
	for id, stack := range goroutines() {
		if _, old := before[id]; !old && !strings.Contains(stack, "\ntesting.") {
			started = append(started, stack)
		}
	}
	return started
}

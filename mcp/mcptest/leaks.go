// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// NoLeaks fails the test if, at its end, goroutines go on that it has begun. It is
// called first, so that it looks last. Goroutines that are about to end are given
// a moment. Tests that run in parallel cannot be told apart by their goroutines:
// NoLeaks is not for them.
func NoLeaks(tb testing.TB) {
	tb.Helper()
	before := goroutines()
	tb.Cleanup(func() {
		var leaked []string
		for pause := time.Microsecond; pause < patience; pause *= 2 {
			if leaked = begunSince(before); len(leaked) == 0 {
				return
			}
			<-time.After(pause)
		}
		tb.Errorf("mcptest: %d goroutines leaked:\n\n%s", len(leaked), strings.Join(leaked, "\n\n"))
	})
}

// patience bounds the last of the pauses; together they take twice as long.
const patience = time.Second

// goroutines are the stacks of all goroutines but the calling one, by what tells
// them apart: "goroutine 7".
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

// begunSince are the stacks of goroutines that are new, those of the testing
// package aside.
func begunSince(before map[string]string) []string {
	var begun []string
	for id, stack := range goroutines() {
		if _, old := before[id]; !old && !strings.Contains(stack, "\ntesting.") {
			begun = append(begun, stack)
		}
	}
	return begun
}

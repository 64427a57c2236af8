// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// NoLeaks fails the test if goroutines started after the call are still running when the test
// ends. Call it first, because cleanup functions run in reverse order. Goroutines that are
// about to end are given a moment to do so.
//
// NoLeaks does not report:
//   - goroutines that replace another one running the same function, such as the workers of a
//     pool or of an open connection;
//   - goroutines of idle HTTP connections, which net/http keeps for the next request;
//   - goroutines whose stack contains one of the strings in ignore. Use them to name functions
//     or packages that intentionally outlive the test, such as a database pool:
//     "database/sql.". The empty string matches every stack.
//
// NoLeaks has no effect in a parallel test, because it cannot distinguish the goroutines of
// other tests from those of its own.
func NoLeaks(tb testing.TB, ignore ...string) {
	tb.Helper()
	before := goroutines()
	tb.Cleanup(func() {
		if isParallel(tb) {
			return
		}
		var leaked []string
		for pause := time.Microsecond; pause < patience; pause *= 2 {
			if leaked = startedSince(before, ignore); len(leaked) == 0 {
				return
			}
			<-time.After(pause)
		}
		tb.Errorf("mcptest: %d goroutines leaked. If they are meant to outlive the test, name their function or "+
			"package in Client.IgnoreLeaks, or in the arguments of NoLeaks:\n\n%s", len(leaked), strings.Join(leaked, "\n\n"))
	})
}

// isParallel reports whether the test or one of its parents is parallel. The only way to find
// out is Setenv, which panics in that case.
func isParallel(tb testing.TB) (parallel bool) {
	defer func() { parallel = recover() != nil }()
	tb.Setenv("MCPTEST_PARALLEL", "no")
	return false
}

// patience is the maximum length of a pause. All pauses together take up to twice as long.
const patience = time.Second

// goroutines returns the stacks of all goroutines except the calling one, keyed by names such
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

// startedSince returns the stacks of the goroutines that are not in before. It omits
// goroutines of package testing and of idle connections, and stacks that contain a string of
// ignore. For each function, it also omits as many goroutines as have ended.
func startedSince(before map[string]string, ignore []string) []string {
	now, ended := goroutines(), map[string]int{}
	for id, stack := range before {
		if _, runs := now[id]; !runs {
			ended[functionOf(stack)]++
		}
	}
	var started []string
	for id, stack := range now {
		if _, old := before[id]; old || strings.Contains(stack, "\ntesting.") || isIdleConnection(stack) || containsAny(stack, ignore) {
			continue
		}
		if f := functionOf(stack); ended[f] > 0 {
			ended[f]--
			continue
		}
		started = append(started, stack)
	}
	return started
}

// functionOf returns the name of the function that a goroutine was started with, which is the
// function of the outermost frame.
func functionOf(stack string) string {
	frames, _, _ := strings.Cut(stack, "\ncreated by ")
	lines := strings.Split(frames, "\n") // two for each frame: the call and its position
	call := lines[max(0, len(lines)-2)]
	return call[:max(0, strings.LastIndexByte(call, '('))]
}

func containsAny(stack string, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(stack, text) })
}

// isIdleConnection reports whether a goroutine belongs to an HTTP connection that may be idle.
// A connection in use is detected by another goroutine: it runs the handler, sends the
// request, or waits for the end of a body. The stack decides: labels of runtime/pprof would
// tell the goroutines of parallel tests apart, but timers lose them.
func isIdleConnection(stack string) bool {
	reads := strings.Contains(stack, "\nnet/http.(*persistConn).readLoop(") || strings.Contains(stack, "\nnet/http.(*conn).serve(")
	return reads && strings.Contains(stack, "\nbufio.(*Reader).Peek(") || containsAny(stack, []string{
		"\nnet/http.(*persistConn).writeLoop(",
		"\nnet/http.(*http2ClientConn).readLoop(", "\nnet/http.(*http2serverConn).serve(", "\nnet/http.(*http2serverConn).readFrames(",
		// The same since Go 1.27.
		"\nnet/http/internal/http2.(*ClientConn).readLoop(", "\nnet/http/internal/http2.(*serverConn).serve(", "\nnet/http/internal/http2.(*serverConn).readFrames(",
	})
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package leak

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines have to end after the last test.
const patience = 10 * time.Second

// Main runs the tests of a package and exits. The tests fail if goroutines of this module are
// left. Call it from TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if left := wait(patience); code == 0 && len(left) > 0 {
		fmt.Fprintf(os.Stderr, "leak: goroutines are left after the tests:\n\n%s\n", strings.Join(left, "\n\n"))
		code = 1
	}
	os.Exit(code)
}

// wait waits until no goroutine of this module but the caller is left, and returns the stacks
// of those that are left in the end.
func wait(limit time.Duration) (left []string) {
	deadline := time.After(limit)
	for {
		if left = goroutines(); len(left) == 0 {
			return nil
		}
		select {
		case <-deadline:
			return left
		case <-time.After(time.Millisecond):
		}
	}
}

// goroutines returns the stacks of the goroutines of this module, but for the caller.
func goroutines() (all []string) {
	stacks := make([]byte, 8<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for i, stack := range strings.Split(string(stacks), "\n\n") {
		if i > 0 && strings.Contains(stack, "github.com/go-psi/psi/") { // the first one is the caller's
			all = append(all, stack)
		}
	}
	return all
}

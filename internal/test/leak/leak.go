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

// Main runs the tests of a package and exits. The tests fail if goroutines of this module
// are still running. Call it from TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if left := wait(patience); code == 0 && len(left) > 0 {
		fmt.Fprintf(os.Stderr, "leak: goroutines are left after the tests:\n\n%s\n", strings.Join(left, "\n\n"))
		code = 1
	}
	os.Exit(code)
}

// wait waits until no other goroutine of this module is running. It returns the stacks of
// the goroutines that are still running after limit.
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

// goroutines returns the stacks of the goroutines of this module, except the caller's.
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

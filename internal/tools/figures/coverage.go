// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"strings"
	"time"
)

// printCalls builds this program at dir with coverage and runs it once per call.
func printCalls(ctx context.Context, w io.Writer, dir string) error {
	temp, err := os.MkdirTemp("", "figures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	program := filepath.Join(temp, "program")
	if _, err := runGo(ctx, dir, "build", "-cover", "-covermode=atomic", "-coverpkg="+module+"...", "-o", program, "./internal/tools/figures"); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%-48s %9s %6s\n", "one call executes", "functions", "files")
	for _, c := range calls {
		report, err := measureCall(ctx, dir, program, c.name)
		if err != nil {
			return err
		}
		functions, files := countExecuted(report)
		fmt.Fprintf(w, "%-48s %9d %6d\n", c.title, functions, files)
	}
	return nil
}

// measureCall returns the output of "go tool cover -func" for one call.
func measureCall(ctx context.Context, dir, program, name string) (string, error) {
	out := program + "." + name
	if err := os.Mkdir(out, 0o700); err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, program, "-one", name, "-dir", out) //nolint:gosec // it is this program, built for coverage
	command.Env = append(os.Environ(), "GOCOVERDIR="+filepath.Dir(program)) // unused: the coverage of the whole process
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, output)
	}
	if _, err := runGo(ctx, dir, "tool", "covdata", "textfmt", "-i", out, "-o", out+".txt"); err != nil {
		return "", err
	}
	return runGo(ctx, dir, "tool", "cover", "-func", out+".txt")
}

// countExecuted counts the executed functions and files in lines such as
// "github.com/go-psi/psi/mcp/mux.go:40: NewMux 75.0%". The blocks of a function literal
// count for the enclosing function.
func countExecuted(report string) (functions, files int) {
	seen := map[string]bool{}
	for line := range strings.Lines(report) {
		fields := strings.Fields(line)
		name, ours := strings.CutPrefix(fields[0], module)
		if ours && !strings.HasPrefix(name, "internal/tools/figures/") && fields[2] != "0.0%" {
			file, _, _ := strings.Cut(name, ":")
			seen[file] = true
			functions++
		}
	}
	return functions, len(seen)
}

// writeCoverage makes a call twice and writes the coverage of the second to dir. The first
// call performs one-time work, such as filling caches.
func writeCoverage(name, dir string) error {
	for _, c := range calls {
		if c.name != name {
			continue
		}
		makeCall := c.prepare()
		for range 2 {
			if err := coverage.ClearCounters(); err != nil {
				return err
			}
			if got := makeCall(); !strings.Contains(got, wantResult) {
				return fmt.Errorf("got %s, want %s", got, wantResult)
			}
			time.Sleep(100 * time.Millisecond) // goroutines of the call may still be ending
		}
		if err := coverage.WriteMetaDir(dir); err != nil {
			return err
		}
		return coverage.WriteCountersDir(dir)
	}
	return fmt.Errorf("there is no call %q", name)
}

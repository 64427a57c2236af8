// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// compile builds the test binary of a package in dir.
func compile(ctx context.Context, p *goPackage, dir string, flags ...string) (string, error) {
	binary := filepath.Join(dir, strings.ReplaceAll(p.ImportPath, "/", "_")+".test")
	args := append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, p.ImportPath)...)
	cmd.Dir = p.Module.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the tests of %s do not compile: %w\n%s", p.ImportPath, err, out)
	}
	return binary, nil
}

// runTests runs the named tests of a binary with one mutant switched on, or none if number
// is 0. It returns their output.
func runTests(ctx context.Context, p *goPackage, binary string, names []string, number int, limit time.Duration, flags ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Second) // the binary enforces limit itself
	defer cancel()
	args := append([]string{"-test.run=^(" + strings.Join(names, "|") + ")$", "-test.failfast", "-test.timeout=" + limit.String()}, flags...)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = p.Dir
	// Processes started by tests complain if GOCOVERDIR is unset.
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+filepath.Dir(binary), environment+"="+strconv.Itoa(number))
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

// An outcome is the result of testing a mutant.
type outcome string

const (
	killed    outcome = "killed"
	survived  outcome = "survived"
	uncovered outcome = "uncovered" // no test executes the line
	unclear   outcome = "unclear"   // its tests time out, even without it
	invalid   outcome = "invalid"   // does not compile
)

// run tests a mutant. If number is not 0, it uses the binaries of the testers, in which the
// mutant has that number. The returned string names the package and the test that killed
// the mutant.
func run(ctx context.Context, m mutant, number int, testers []*tester, limit time.Duration) (outcome, string, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", "", err
	}
	result := uncovered
	for _, c := range covering(m, testers) {
		binary := c.binary
		if number == 0 {
			binary, err = compile(ctx, c.goPackage, dir, "-overlay="+overlay)
		}
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		if err != nil {
			return invalid, "", nil
		}
		by, err := c.kill(ctx, binary, number, limit)
		if errors.Is(err, errBusy) {
			return unclear, "", nil
		}
		if err != nil {
			return "", "", err
		}
		if by != "" {
			return killed, c.ImportPath + " " + by, nil
		}
		result = survived
	}
	return result, "", nil
}

// overlay writes the changed file and an overlay file for the go command.
func (m mutant) overlay(dir string) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: changed}})
	return overlay, errors.Join(err, os.WriteFile(changed, m.apply(source), 0o600), os.WriteFile(overlay, replace, 0o600))
}

// A candidate is a package and its tests that execute a mutant, quickest first.
type candidate struct {
	*tester
	tests []*test
}

// covering returns the tests that execute a mutant: first those of its own package, then
// the other packages by total duration.
func covering(m mutant, testers []*tester) []candidate {
	var all []candidate
	for _, t := range testers {
		if tests := slices.Clone(t.executing[m.place()]); len(tests) > 0 {
			slices.SortStableFunc(tests, func(a, b *test) int { return cmp.Compare(a.took, b.took) })
			all = append(all, candidate{t, tests})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if own := b.ImportPath == m.pkg; own != (a.ImportPath == m.pkg) {
			return map[bool]int{true: 1, false: -1}[own]
		}
		return cmp.Compare(total(a.tests), total(b.tests))
	})
	return all
}

// quick is the total duration of the tests that run first.
const quick = time.Second

// kill runs the tests until one fails, and returns its name. Slow tests run only if the
// quick ones pass, because most mutants are killed by a quick test.
func (c candidate) kill(ctx context.Context, binary string, number int, limit time.Duration) (string, error) {
	n := 1
	for n < len(c.tests) && total(c.tests[:n+1]) <= quick {
		n++
	}
	for _, tests := range [][]*test{c.tests[:n], c.tests[n:]} {
		if len(tests) == 0 {
			continue
		}
		var names []string
		for _, t := range tests {
			names = append(names, t.name)
		}
		by, err := c.run(ctx, binary, names, number, min(limit, 3*total(tests)+10*time.Second))
		if by != "" || err != nil {
			return by, err
		}
	}
	return "", nil
}

// timeout is the name of the killer if the tests take too long.
const timeout = "timeout"

// crash is the name of the killer if the output names no test.
const crash = "crash"

// errBusy reports that tests take too long even without the mutant.
var errBusy = errors.New("the machine is busy")

// run runs tests and returns the name of the one that failed. A failure counts only if it
// happens twice, because tests may also fail on a busy machine. Tests that take too long
// get twice the time, and count only if they are faster without the mutant.
func (c candidate) run(ctx context.Context, binary string, names []string, number int, limit time.Duration) (by string, err error) {
	for range 2 {
		out, failure := runTests(ctx, c.goPackage, binary, names, number, limit)
		if ctx.Err() != nil || failure == nil {
			return "", ctx.Err()
		}
		switch by = failed(out); by {
		case timeout:
			limit *= 2
		case crash:
		default:
			name, _, _ := strings.Cut(by, "/")
			names = []string{name}
		}
	}
	if by == timeout {
		if _, failure := runTests(ctx, c.goPackage, c.binary, names, 0, limit); failure != nil {
			return "", cmp.Or(ctx.Err(), errBusy)
		}
	}
	return by, nil
}

var failure = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)

// failed returns the name of the failed test in the output of a binary, or timeout or
// crash.
func failed(out []byte) string {
	if bytes.Contains(out, []byte("panic: test timed out")) {
		return timeout
	}
	if name := failure.FindSubmatch(out); name != nil {
		return string(name[1])
	}
	return crash
}

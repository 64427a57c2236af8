// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A goPackage is the output of go list for a package.
type goPackage struct {
	Dir, ImportPath, Name              string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Module                             struct{ Dir string }
}

func listPackages(ctx context.Context, patterns ...string) ([]*goPackage, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json"}, patterns...)...)
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []*goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(goPackage)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// A place is a line of a file, named as in coverage profiles by import path and base name.
// Line 0 of an import path stands for any line of the package.
type place struct {
	file string
	line int
}

// A test is a test, an example or the seeds of a fuzz test.
type test struct {
	name string
	took time.Duration
}

func total(tests []*test) (sum time.Duration) {
	for _, t := range tests {
		sum += t.took
	}
	return sum
}

var testName = regexp.MustCompile(`(?m)^(Test|Example|Fuzz)\w*$`)

// A tester is a package whose tests execute lines of the mutated packages.
type tester struct {
	*goPackage
	binary    string // test binary with all switchable mutants
	tests     []*test
	executing map[place][]*test
}

// measure runs each test of a package separately, without mutants, to determine its
// duration and the lines of the targets that it executes.
func measure(ctx context.Context, p *goPackage, targets []string, s settings) (*tester, error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary, err := compile(ctx, p, dir, "-coverpkg="+strings.Join(targets, ","))
	if err != nil {
		return nil, err
	}
	list, err := runTests(ctx, p, binary, nil, 0, s.limit, "-test.list=.")
	if err != nil {
		return nil, fmt.Errorf("the tests of %s cannot be listed: %w\n%s", p.ImportPath, err, list)
	}
	t := &tester{goPackage: p, executing: map[place][]*test{}}
	names := make(chan string)
	var mu sync.Mutex // guards t and errs
	var errs []error
	var workers sync.WaitGroup
	for range max(1, s.workers) {
		workers.Go(func() {
			for name := range names {
				one, covered, err := measureOne(ctx, p, binary, name, s.limit)
				mu.Lock()
				t.add(one, covered)
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	for _, name := range testName.FindAllString(string(list), -1) {
		names <- name
	}
	close(names)
	workers.Wait()
	return t, errors.Join(errs...)
}

// check builds the tests with all switchable mutants and runs them with all mutants off.
// Tests that fail nevertheless, for example because they count allocations, are returned as
// unusable.
func (t *tester) check(ctx context.Context, dir, overlay string, limit time.Duration) (unusable []string, err error) {
	if t.binary, err = compile(ctx, t.goPackage, dir, "-overlay="+overlay); err != nil {
		return nil, err
	}
	out, err := runTests(ctx, t.goPackage, t.binary, []string{".*"}, 0, max(limit, 3*total(t.tests)), "-test.failfast=false")
	if err == nil {
		return nil, nil
	}
	for _, found := range failure.FindAllSubmatch(out, -1) {
		if !bytes.HasPrefix(found[0], []byte(" ")) {
			unusable = append(unusable, string(found[1]))
		}
	}
	if len(unusable) == 0 {
		return nil, fmt.Errorf("the tests of %s fail with all mutants off: %w\n%s", t.ImportPath, err, out)
	}
	for at, tests := range t.executing {
		t.executing[at] = slices.DeleteFunc(tests, func(one *test) bool { return slices.Contains(unusable, one.name) })
	}
	return unusable, nil
}

func (t *tester) add(one *test, covered map[place]bool) {
	t.tests = append(t.tests, one)
	for at := range covered {
		t.executing[at] = append(t.executing[at], one)
	}
}

// measureOne runs one test. A failed test is run again, because a test that needs two
// attempts on a busy machine is no reason to give up.
func measureOne(ctx context.Context, p *goPackage, binary, name string, limit time.Duration) (*test, map[place]bool, error) {
	profile := filepath.Join(filepath.Dir(binary), name+".cover")
	defer os.Remove(profile)
	var out []byte
	var err error
	for range 2 {
		begin := time.Now()
		if out, err = runTests(ctx, p, binary, []string{name}, 0, limit, "-test.coverprofile="+profile); err == nil {
			took := time.Since(begin)
			covered, err := readProfile(profile)
			return &test{name, took}, covered, err
		}
	}
	return &test{name: name}, nil, fmt.Errorf("%s of %s fails without a mutant: %w\n%s", name, p.ImportPath, err, out)
}

func readProfile(name string) (map[place]bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseProfile(f)
}

// parseProfile returns the lines that were executed according to a coverage profile.
func parseProfile(r io.Reader) (map[place]bool, error) {
	covered := map[place]bool{}
	s := bufio.NewScanner(r)
	for s.Scan() {
		file, rest, ok := strings.Cut(s.Text(), ":")
		if !ok || file == "mode" || strings.HasSuffix(rest, " 0") {
			continue
		}
		var from, to, column, statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &from, &column, &to, &column, &statements, &count); err != nil {
			return nil, fmt.Errorf("the coverage profile has %q: %w", s.Text(), err)
		}
		covered[place{path.Dir(file), 0}] = true
		for line := from; line <= to; line++ {
			covered[place{file, line}] = true
		}
	}
	return covered, s.Err()
}

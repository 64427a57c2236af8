// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command mutate tests the tests: it makes one change to a program at a time, a mutant, and
// reports the mutants that no test notices.
//
//	bash internal/tools/mutate.sh [-n 100] [-seed 1] [-workers 2] [-timeout 2m] [-tests ./mcpstdio] ./mcp ./mcphttp
//
// Mutants are drawn at random from the named packages; for the same source, the same seed
// draws the same mutants. The source is never modified: mutants are compiled with the
// -overlay flag of the go command, most of them into one program. The tests of the named
// packages and of the -tests packages are first run once each to see which lines they
// execute. A mutant is then tested by the tests that execute its line, those of its own
// package first and quick tests before slow ones, until one test fails twice. If tests take
// too long even without the mutant, because the machine is busy, the outcome is unclear,
// which does not count as noticed.
//
// A mutant that survives is a question: is a test missing, is the code unnecessary, or does
// the change make no difference? To test it again, name it:
//
//	bash internal/tools/mutate.sh -n 0 -only 'mcp/encode.go:120' ./mcp
//
// Debug logs and capacity hints are not changed, because no behavior depends on them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := mutate(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// settings holds the command-line settings.
type settings struct {
	n, workers int
	seed       uint64
	limit      time.Duration
	patterns   []string
	only       *regexp.Regexp // matches the mutants to test, as reported
	tests      []string       // patterns of the packages whose tests run
}

func parse(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.IntVar(&s.n, "n", 100, "how many mutants to draw; 0 is all")
	flags.IntVar(&s.workers, "workers", 2, "how many mutants to test at once")
	flags.Uint64Var(&s.seed, "seed", 1, "of the random choice")
	flags.DurationVar(&s.limit, "timeout", 2*time.Minute, "the limit for the tests of a package; with a mutant ten seconds and three times what they take without it, if that is less")
	only := flags.String("only", "", "test only mutants whose description matches this regular expression, such as 'mcp/encode.go:120'")
	more := flags.String("tests", "", "more packages, beside those that are changed, whose tests are run, such as './mcpstdio ./middleware/...'")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.patterns = flags.Args(); len(s.patterns) == 0 {
		return s, errors.New("name the packages to change, such as ./mcp")
	}
	var err error
	if s.only, err = regexp.Compile(*only); err != nil {
		return s, fmt.Errorf("-only: %w", err)
	}
	s.tests = append(strings.Fields(*more), s.patterns...)
	return s, nil
}

func mutate(ctx context.Context, args []string, w io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	targets, err := listPackages(ctx, s.patterns...)
	if err != nil {
		return err
	}
	mutants, err := draw(targets, s)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	board, err := newSwitchboard(ctx, targets, mutants, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d of %d mutants are built together\n", len(board.numbers), len(mutants))
	testers, err := measureAll(ctx, targets, dir, board.overlay, s, w)
	if err != nil {
		return err
	}
	r := &report{w: w, drawn: len(mutants), began: time.Now()}
	work := make(chan mutant)
	var workers sync.WaitGroup
	for range max(1, s.workers) {
		workers.Go(func() {
			for m := range work {
				outcome, by, err := run(ctx, m, board.numbers[m], testers, s.limit)
				r.add(m, outcome, by, err)
			}
		})
	}
	for _, m := range mutants {
		work <- m
	}
	close(work)
	workers.Wait()
	r.summarize(targets)
	return errors.Join(r.errs...)
}

// draw returns mutants of all packages, in random order.
func draw(targets []*goPackage, s settings) ([]mutant, error) {
	var all []mutant
	for _, p := range targets {
		for _, name := range p.GoFiles {
			found, err := mutantsOf(p.ImportPath, filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			all = append(all, slices.DeleteFunc(found, func(m mutant) bool { return !s.only.MatchString(m.String()) })...)
		}
	}
	random := rand.New(rand.NewPCG(s.seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if s.n > 0 {
		all = all[:min(s.n, len(all))]
	}
	return all, nil
}

// measureAll measures all tests that mutants must pass.
func measureAll(ctx context.Context, targets []*goPackage, dir, overlay string, s settings, w io.Writer) ([]*tester, error) {
	tested, err := listPackages(ctx, s.tests...)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, t := range targets {
		paths = append(paths, t.ImportPath)
	}
	var testers []*tester
	for _, p := range tested {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		t, err := measure(ctx, p, paths, s)
		if err != nil {
			return nil, err
		}
		unusable, err := t.check(ctx, dir, overlay, s.limit)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "%-60s %4d tests, %6.1fs without a mutant\n", p.ImportPath, len(t.tests), total(t.tests).Seconds())
		if len(unusable) > 0 {
			fmt.Fprintf(w, "not used, because they fail with all mutants off: %s\n", strings.Join(unusable, " "))
		}
		testers = append(testers, t)
	}
	return testers, nil
}

// A report collects the results of several workers.
type report struct {
	w     io.Writer
	drawn int
	began time.Time

	mu      sync.Mutex
	results []result
	errs    []error
}

type result struct {
	mutant
	outcome outcome
}

func (r *report) add(m mutant, o outcome, by string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	r.results = append(r.results, result{m, o})
	if by != "" {
		by = " (" + by + ")"
	}
	fmt.Fprintf(r.w, "%4d/%d %6.0fs %-9s %v%s\n", len(r.results), r.drawn, time.Since(r.began).Seconds(), o, m, by)
}

// summarize prints the survivors and a table by package.
func (r *report) summarize(targets []*goPackage) {
	fmt.Fprintln(r.w, "\nNot noticed:")
	slices.SortFunc(r.results, func(a, b result) int { return strings.Compare(a.String(), b.String()) })
	for _, one := range r.results {
		if one.outcome != killed && one.outcome != invalid {
			fmt.Fprintf(r.w, "%s: %v\n", one.outcome, one.mutant)
		}
	}
	fmt.Fprintf(r.w, "\n%-60s %7s %7s %9s %10s %8s %8s\n", "package", "mutants", "killed", "survived", "uncovered", "unclear", "noticed")
	for _, t := range targets {
		r.row(t.ImportPath, func(m mutant) bool { return m.pkg == t.ImportPath })
	}
	r.row("all", func(mutant) bool { return true })
}

// row prints the counts of the selected mutants, except those that do not compile.
func (r *report) row(name string, of func(mutant) bool) {
	count := map[outcome]int{}
	total := 0
	for _, one := range r.results {
		if of(one.mutant) && one.outcome != invalid {
			count[one.outcome]++
			total++
		}
	}
	noticed := 100 * float64(count[killed]) / float64(max(total, 1))
	fmt.Fprintf(r.w, "%-60s %7d %7d %9d %10d %8d %7.1f%%\n", name, total, count[killed], count[survived], count[uncovered], count[unclear], noticed)
}

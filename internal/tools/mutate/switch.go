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
)

// Most mutants need no separate build: they are compiled into the same program, each with a
// number, and an environment variable switches one of them on. Mutants of constants, which
// may have any type, and mutants that do not compile are built alone.

// environment is the variable that holds the number of the active mutant.
const environment = "MUTANT"

// helpers is the source of a file added to each changed package.
const helpers = `package %s

import (
	"cmp"
	"os"
	"strconv"
)

var mutantOn, _ = strconv.Atoi(os.Getenv("` + environment + `"))

func isMutant(n int) bool { return n == mutantOn }

func mutantLSS[T cmp.Ordered](n int, a, b T) bool { return a < b || a == b && isMutant(n) }
func mutantLEQ[T cmp.Ordered](n int, a, b T) bool { return a < b || a == b && !isMutant(n) }
func mutantGTR[T cmp.Ordered](n int, a, b T) bool { return a > b || a == b && isMutant(n) }
func mutantGEQ[T cmp.Ordered](n int, a, b T) bool { return a > b || a == b && !isMutant(n) }

func mutantLAND(n int, a bool, b func() bool) bool { return a != isMutant(n) && b() || a && isMutant(n) }
func mutantLOR(n int, a bool, b func() bool) bool  { return a && !isMutant(n) || a == isMutant(n) && b() }

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutantADD[T mutantNumber](n int, a, b T) T {
	if isMutant(n) {
		return a - b
	}
	return a + b
}

func mutantSUB[T mutantNumber](n int, a, b T) T {
	if isMutant(n) {
		return a + b
	}
	return a - b
}
`

// An edit replaces part of a file.
type edit struct {
	start, end int
	with       string
}

// edits returns the edits that make a mutant depend on isMutant(n).
func (m mutant) edits(n int) []edit {
	id := strconv.Itoa(n)
	number := func(s string) string { return strings.ReplaceAll(s, "#", id) }
	all := []edit{{m.from, m.from, number(m.form.before)}}
	if m.form.between != "" {
		all = append(all, edit{m.start, m.end, m.form.between})
	}
	return append(all, edit{m.to, m.to, number(m.form.after)})
}

// A form is the text inserted before a changed expression or statement, in place of its
// operator, and after it. Each # is replaced by the number of the mutant.
type form struct{ before, between, after string }

var (
	negation  = form{"((", "", ") != isMutant(#))"}
	omission  = form{"if !isMutant(#) { ", "", " }"}
	nilReturn = form{"func() error { if isMutant(#) { return nil }; return ", "", " }()"}
	exchange  = map[string]form{
		"==": negation, "!=": negation,
		"<": {"mutantLSS(#, ", ", ", ")"}, "<=": {"mutantLEQ(#, ", ", ", ")"},
		">": {"mutantGTR(#, ", ", ", ")"}, ">=": {"mutantGEQ(#, ", ", ", ")"},
		"+": {"mutantADD(#, ", ", ", ")"}, "-": {"mutantSUB(#, ", ", ", ")"},
		"&&": {"mutantLAND(#, ", ", func() bool { return ", " })"}, "||": {"mutantLOR(#, ", ", func() bool { return ", " })"},
	}
)

// applyAll returns a file with the edits of several mutants. Mutants may be nested but must
// not overlap otherwise.
func applyAll(source []byte, mutants map[int]mutant) []byte {
	numbers := make([]int, 0, len(mutants))
	for n := range mutants {
		numbers = append(numbers, n)
	}
	// Outermost mutants come first, so that their edits also enclose those of others at the
	// same offset. Of the mutants of one expression, that of its operator is innermost.
	slices.SortFunc(numbers, func(a, b int) int {
		x, y := mutants[a], mutants[b]
		return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(y.to, x.to), cmp.Compare(x.form.between, y.form.between), cmp.Compare(a, b))
	})
	var opening, closing []edit
	for _, n := range numbers {
		all := mutants[n].edits(n)
		last := len(all) - 1
		opening = append(opening, all[:last]...)
		closing = append(closing, all[last])
	}
	slices.Reverse(closing)
	all := slices.Concat(closing, opening)
	slices.SortStableFunc(all, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	var out []byte
	at := 0
	for _, e := range all {
		out = append(append(out, source[at:e.start]...), e.with...)
		at = e.end
	}
	return append(out, source[at:]...)
}

// A switchboard is a program with many mutants, each identified by a number.
type switchboard struct {
	overlay string
	numbers map[mutant]int
}

// newSwitchboard writes a program with all switchable mutants to a directory, except those
// that do not compile.
func newSwitchboard(ctx context.Context, targets []*goPackage, mutants []mutant, dir string) (*switchboard, error) {
	s := &switchboard{overlay: filepath.Join(dir, "overlay.json"), numbers: map[mutant]int{}}
	for i, m := range mutants {
		if m.form.after != "" {
			s.numbers[m] = i + 1
		}
	}
	for {
		if err := s.write(targets, dir); err != nil {
			return nil, err
		}
		out, err := s.build(ctx, targets)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if s.leaveOut(out) == 0 {
			return nil, fmt.Errorf("the mutants do not compile: %w\n%s", err, out)
		}
	}
}

func (s *switchboard) build(ctx context.Context, targets []*goPackage) ([]byte, error) {
	args := []string{"build", "-gcflags=-e", "-overlay=" + s.overlay}
	for _, t := range targets {
		args = append(args, t.ImportPath)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = targets[0].Module.Dir
	return cmd.CombinedOutput()
}

// write writes the changed files and the overlay file.
func (s *switchboard) write(targets []*goPackage, dir string) error {
	files := map[string]map[int]mutant{}
	for m, n := range s.numbers {
		if files[m.file] == nil {
			files[m.file] = map[int]mutant{}
		}
		files[m.file][n] = m
	}
	replace := map[string]string{}
	for file, mutants := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := writeNext(dir, replace, file, applyAll(source, mutants)); err != nil {
			return err
		}
	}
	for _, t := range targets {
		if err := writeNext(dir, replace, filepath.Join(t.Dir, "zz_mutants.go"), fmt.Appendf(nil, helpers, t.Name)); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	return errors.Join(err, os.WriteFile(s.overlay, text, 0o600))
}

// writeNext writes the replacement of a file to a separate directory, so that it keeps the
// base name, which the compiler prints.
func writeNext(dir string, replace map[string]string, file string, text []byte) error {
	dir = filepath.Join(dir, strconv.Itoa(len(replace)))
	replace[file] = filepath.Join(dir, filepath.Base(file))
	return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(replace[file], text, 0o600))
}

var compileError = regexp.MustCompile(`^(?:\S*/)?([^/\s]+\.go):(\d+):`)

// leaveOut removes the mutants on lines that do not compile according to the compiler's
// output, and returns their number.
func (s *switchboard) leaveOut(out []byte) (removed int) {
	pkg := ""
	for line := range bytes.Lines(out) {
		if name, ok := bytes.CutPrefix(line, []byte("# ")); ok {
			pkg = strings.TrimSpace(string(name))
			continue
		}
		found := compileError.FindSubmatch(line)
		if found == nil {
			continue
		}
		at, _ := strconv.Atoi(string(found[2]))
		for m := range s.numbers {
			if m.pkg == pkg && filepath.Base(m.file) == string(found[1]) && m.line <= at && at <= m.lastLine {
				delete(s.numbers, m)
				removed++
			}
		}
	}
	return removed
}

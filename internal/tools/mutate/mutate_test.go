// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const program = `package p

import "errors"

const size = 4 << 1

func f(n int) (m int, err error) {
	if n < size && n != 0 {
		m = n + 1
		debug.Debug("not this one"); debug.Log(slog.LevelDebug, "nor this one")
		defer g(true)
	}
	return m, errors.New("x")
}

func g(bool) {
	k := 1
	_ = make([]int, 0, 3-k)
	_ = make(http.Header, 4)
	_ = make([]int, 2)
	_ = "a" + fmt.Sprint(k) + "b"
	_ = func() int { return k }
}
`

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each mutant makes one change, and the list is complete.
func TestMutants(t *testing.T) {
	found, err := mutantsOf("p", write(t, t.TempDir(), "p.go", program))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, fmt.Sprintf("%d %s: %s => %s", m.line, m.kind, m.source, m.with))
		if changed := string(m.apply([]byte(program))); changed == program || !strings.Contains(changed, m.with) {
			t.Errorf("%v is not applied", m)
		}
	}
	want := []string{
		"5 constant: 4 => 5",
		"5 constant: 1 => 2",
		"8 condition: n < size && n != 0 => !(n < size && n != 0)",
		"8 operator: < => <=",
		"8 operator: && => ||",
		"8 operator: != => ==",
		"8 constant: 0 => 1",
		"9 statement: m = n + 1 => if false { m = n + 1 }",
		"9 operator: + => -",
		"9 constant: 1 => 2",
		"11 statement: defer g(true) => if false { defer g(true) }",
		"11 constant: true => false",
		`13 error: errors.New("x") => nil`,
		"17 constant: 1 => 2",
		"18 statement: _ = make([]int, 0, 3-k) => if false { _ = make([]int, 0, 3-k) }",
		"18 constant: 0 => 1",
		"19 statement: _ = make(http.Header, 4) => if false { _ = make(http.Header, 4) }",
		"20 statement: _ = make([]int, 2) => if false { _ = make([]int, 2) }",
		"20 constant: 2 => 3",
		`21 statement: _ = "a" + fmt.Sprint(k) + "b" => if false { _ = "a" + fmt.Sprint(k) + "b" }`,
		"22 statement: _ = func() int { return k } => if false { _ = func() int { return k } }",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A coverage profile contains the line where a statement starts, but no lines after a
// function literal in the statement.
func TestCoveredLine(t *testing.T) {
	found, err := mutantsOf("p", write(t, t.TempDir(), "p.go", `package p

var size = 1

func f(n int) config {
	switch g(func() bool {
		return false
	}); {
	case n == 2:
	}
	return config{
		check: func() bool {
			return true
		},
		size: 3,
	}
}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, m := range found {
		got[m.source] = m.covered
	}
	for source, want := range map[string]int{"1": 0, "false": 7, "2": 6, "true": 13, "3": 11} {
		if got[source] != want {
			t.Errorf("%s is in line %d, want %d", source, got[source], want)
		}
	}
}

// mutate reports every outcome for a module with one mutant of each.
func TestMutate(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program many times")
	}
	dir := t.TempDir()
	write(t, dir, "go.mod", "module example.com/p\n\ngo 1.26\n")
	write(t, dir, "p.go", "package p\n\nfunc noticed() bool { return true }\n\nfunc ignored() bool { return true }\n\nfunc never() bool { return true }\n\nvar a [1]int = [1]int{}\n")
	write(t, dir, "p_test.go", "package p\n\nimport \"testing\"\n\nfunc TestP(t *testing.T) {\n\tif ignored(); !noticed() {\n\t\tt.Fatal()\n\t}\n}\n")
	t.Chdir(dir)
	var out strings.Builder
	if err := mutate(t.Context(), []string{"-n", "0", "-workers", "1", "."}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"p.go:3: constant: true => false (example.com/p TestP)", "survived: example.com/p/p.go:5: ", "uncovered: example.com/p/p.go:7: ", "33.3%",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

// Mutants that are built together behave like mutants that are built alone: switched off,
// they change nothing; switched on, they make one change.
func TestSwitches(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program many times")
	}
	dir := t.TempDir()
	write(t, dir, "go.mod", "module example.com/p\n\ngo 1.26\n")
	write(t, dir, "p.go", switches)
	write(t, dir, "p_test.go", switchesTest)
	t.Chdir(dir)
	var out strings.Builder
	if err := mutate(t.Context(), []string{"-n", "0", "-workers", "1", "."}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"16 of 17 mutants are built together", "invalid   example.com/p/p.go:15: operator: + => -", "100.0%"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

const switches = `package p

import "errors"

func less(a, b int) bool      { return a < b }
func atMost(a, b int) bool    { return a <= b }
func more(a, b int) bool      { return a > b }
func atLeast(a, b int) bool   { return a >= b }
func same(a, b any) bool      { return a == b }
func different(a, b any) bool { return a != b }
func both(a, b bool) bool     { return a && b }
func either(a, b bool) bool   { return a || b }
func sum(a, b uint8) uint8    { return a + b }
func rest(a, b float64) float64 { return a - b }
func join(a, b string) string { return a + b }

func check(n *int, wrong bool) error {
	if *n++; wrong && less(*n, *n+*n) {
		defer func() { *n-- }()
		return errors.New("wrong")
	}
	return nil
}
`

const switchesTest = `package p

import "testing"

func TestP(t *testing.T) {
	for a := range 3 {
		b := 1
		if less(a, b) != (a == 0) || atMost(a, b) != (a != 2) || more(a, b) != (a == 2) || atLeast(a, b) != (a != 0) {
			t.Fatal("order")
		}
		if same(a, b) != (a == 1) || different(a, b) != (a != 1) || sum(uint8(a), 1) != uint8(a+1) || rest(float64(a), 1) != float64(a-1) {
			t.Fatal("numbers")
		}
		if x, y := a > 0, a > 1; both(x, y) != (a == 2) || either(x, y) != (a > 0) || either(y, x) != (a > 0) || both(y, x) != (a == 2) || join("a", "b") != "ab" {
			t.Fatal("logic")
		}
		n := a
		if err := check(&n, a > 0); (err == nil) != (a == 0) || a > 0 && n != a || a == 0 && n != 1 {
			t.Fatal(err, n)
		}
	}
}
`

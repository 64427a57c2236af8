// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package examples_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

const repository = ".."

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(os.DirFS(repository), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var goCode = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

func readmeCode(t *testing.T) []string {
	t.Helper()
	var blocks []string
	for _, match := range goCode.FindAllStringSubmatch(readFile(t, "README.md"), -1) {
		blocks = append(blocks, match[1])
	}
	if len(blocks) == 0 {
		t.Fatal("the README has no Go code")
	}
	return blocks
}

// The README begins with a program: examples/calculator, whose Example runs it,
// after its imports.
func TestReadmeBeginsWithTheCalculator(t *testing.T) {
	_, program, ok := strings.Cut(readFile(t, "examples/calculator/main.go"), "\n)\n\n")
	if !ok {
		t.Fatal("examples/calculator/main.go has no imports")
	}
	first := readmeCode(t)[0]
	if first != program {
		t.Errorf("the README begins with\n%s\nbut examples/calculator/main.go is\n%s", first, program)
	}
	if lines := strings.Count(first, "\n"); lines > 25 {
		t.Errorf("the first program has %d lines, which is too long for a first look", lines)
	}
}

// Everything else stands, but for its indentation, in the code of an example with
// an output, or of a test in a program.
func TestReadmeIsTested(t *testing.T) {
	var tested []string
	err := fs.WalkDir(os.DirFS(repository), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if isTested(name) {
			tested = append(tested, unindented(readFile(t, name)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range readmeCode(t)[1:] {
		found := false
		for _, text := range tested {
			found = found || strings.Contains(text, "\n"+unindented(block))
		}
		if !found {
			t.Errorf("this stands in no example:\n%s", block)
		}
	}
}

func isTested(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "example_") && strings.HasSuffix(base, "_test.go") || name == "examples/calculator/main_test.go"
}

func unindented(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		lines.WriteString(strings.TrimLeft(line, "\t"))
	}
	return lines.String()
}

var (
	anyCode   = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
	localLink = regexp.MustCompile(`\]\(([^)#: ]+)[)#]`)
)

// TestLinks checks that the files which the pages link to exist.
func TestLinks(t *testing.T) {
	pages := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := fs.Glob(os.DirFS(repository), pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		prose := anyCode.ReplaceAllString(readFile(t, page), "")
		for _, match := range localLink.FindAllStringSubmatch(prose, -1) {
			if _, err := fs.Stat(os.DirFS(repository), path.Join(path.Dir(page), match[1])); err != nil {
				t.Errorf("%s: a broken link: %v", page, err)
			}
		}
	}
}

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

// programs are the files whose text the README shows whole, from the package clause on.
var programs = []string{"examples/hello/main.go", "examples/hello/main_test.go"}

// maxReadme is the number of lines of the README.
const maxReadme = 200

// TestReadmePrograms checks that the README begins with a short program, and that it shows
// programs which can be pasted into a file. Their tests run them.
func TestReadmePrograms(t *testing.T) {
	var shown []string
	for _, block := range readmeCode(t) {
		if isProgram(block) {
			shown = append(shown, block)
		}
	}
	if len(shown) != len(programs) {
		t.Fatalf("the README shows %d programs, want %d", len(shown), len(programs))
	}
	for i, name := range programs {
		text := readFile(t, name)
		if want := text[strings.Index(text, "\npackage main\n")+1:]; shown[i] != want {
			t.Errorf("the README shows\n%s\nbut %s is\n%s", shown[i], name, want)
		}
	}
	if first := readmeCode(t)[0]; !isProgram(first) || strings.Count(first, "\n") > 30 {
		t.Error("the README does not begin with a short program")
	}
	if lines := strings.Count(readFile(t, "README.md"), "\n"); lines > maxReadme {
		t.Errorf("the README has %d lines; %d are the most", lines, maxReadme)
	}
}

// TestJWTIsShort holds what docs/migrating.md says of a server with three tools, tokens
// and a scope: with its test it has at most 106 lines.
func TestJWTIsShort(t *testing.T) {
	lines := strings.Count(readFile(t, "examples/jwt/main.go")+readFile(t, "examples/jwt/main_test.go"), "\n")
	if lines > 106 {
		t.Errorf("examples/jwt has %d lines", lines)
	}
}

func isProgram(block string) bool { return strings.HasPrefix(block, "package main\n") }

// TestReadmeIsTested checks that everything else, but for its indentation, is in the code of
// an Example, or of the client that goes with the server.
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
	for _, block := range readmeCode(t) {
		found := isProgram(block)
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
	return strings.HasPrefix(base, "example_") && strings.HasSuffix(base, "_test.go") || name == "examples/hello/client/main.go"
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
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "examples/*.md"} {
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

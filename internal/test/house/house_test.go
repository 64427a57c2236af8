// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package house_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestHouse checks the repository against all rules.
func TestHouse(t *testing.T) {
	tree, err := readTree(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			for _, finding := range rule.find(tree) {
				t.Errorf("%s: %s", finding, rule.advice)
			}
		})
	}
}

// TestRules checks that each rule finds the violations in its examples.
func TestRules(t *testing.T) {
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			files := fstest.MapFS{}
			var want []string
			for name, text := range rule.examples {
				files[name] = &fstest.MapFile{Data: []byte(text)}
				for i, line := range strings.Split(text, "\n") {
					if strings.Contains(line, "WRONG") {
						want = append(want, fmt.Sprintf("%s:%d", name, i+1))
					}
				}
			}
			tree, err := readTree(files)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, finding := range rule.find(tree) {
				got = append(got, fmt.Sprintf("%s:%d", finding.path, finding.line))
			}
			slices.Sort(want)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

// finding is a violation of a rule.
type finding struct {
	path string
	line int
	what string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.what) }

// source is a Go file. Its path is slash-separated and relative to the root.
type source struct {
	path  string
	text  string
	file  *ast.File
	lines *token.File
}

func (s source) dir() string  { return path.Dir(s.path) }
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// at returns a finding at the start of a node.
func (s source) at(node ast.Node, format string, args ...any) finding {
	return finding{s.path, s.lines.Line(node.Pos()), fmt.Sprintf(format, args...)}
}

// root returns the directory of the module's go.mod, the nearest one above this package.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = parent
	}
}

// readTree parses all Go files, including those of nested modules, sorted by path.
func readTree(files fs.FS) ([]source, error) {
	var tree []source
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && ignored(entry.Name()) {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		s, err := readSource(files, name)
		tree = append(tree, s)
		return err
	})
	slices.SortFunc(tree, func(a, b source) int { return cmp.Compare(a.path, b.path) })
	return tree, err
}

// ignored reports whether the go command ignores directories with this name.
func ignored(dir string) bool {
	return strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_") || dir == "testdata" || dir == "node_modules"
}

func readSource(files fs.FS, name string) (source, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return source{}, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	return source{path: name, text: string(text), file: file, lines: set.File(file.Package)}, nil
}

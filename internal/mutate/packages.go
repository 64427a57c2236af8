// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A goPackage is what go list says of a package.
type goPackage struct {
	Dir, ImportPath                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Deps, Imports, TestImports         []string
	XTestImports                       []string
	Module                             struct{ Path, Dir string }
}

func listPackages(patterns ...string) ([]*goPackage, error) {
	cmd := exec.Command("go", append([]string{"list", "-json"}, patterns...)...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
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

// testersOf returns the packages of all that have tests in which a target is compiled.
func testersOf(targets, all []*goPackage) []*goPackage {
	deps := map[string][]string{}
	for _, p := range all {
		deps[p.ImportPath] = append(slices.Clone(p.Deps), p.ImportPath)
	}
	uses := func(p, target *goPackage) bool {
		return slices.ContainsFunc(slices.Concat([]string{p.ImportPath}, p.TestImports, p.XTestImports), func(path string) bool {
			return slices.Contains(deps[path], target.ImportPath)
		})
	}
	return slices.DeleteFunc(slices.Clone(all), func(p *goPackage) bool {
		return len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 || !slices.ContainsFunc(targets, func(t *goPackage) bool { return uses(p, t) })
	})
}

// coveredLines are the lines that a test executes, by the name of their file in coverage
// profiles: import path and base name.
type coveredLines map[string]map[int]bool

func (c coveredLines) has(m mutant) bool {
	if m.covered > 0 {
		return c[m.pkg+"/"+filepath.Base(m.file)][m.covered]
	}
	for file := range c {
		if path.Dir(file) == m.pkg {
			return true
		}
	}
	return false
}

// parseProfile reads a coverage profile.
func parseProfile(r io.Reader) (coveredLines, error) {
	covered := coveredLines{}
	for s := bufio.NewScanner(r); s.Scan(); {
		file, rest, ok := strings.Cut(s.Text(), ":")
		if !ok || file == "mode" {
			continue
		}
		var from, to, column, statements, count int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &from, &column, &to, &column, &statements, &count); err != nil {
			return nil, fmt.Errorf("the coverage profile has %q: %w", s.Text(), err)
		}
		if count == 0 {
			continue
		}
		if covered[file] == nil {
			covered[file] = map[int]bool{}
		}
		for line := from; line <= to; line++ {
			covered[file][line] = true
		}
	}
	return covered, nil
}

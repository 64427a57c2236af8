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
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// A goPackage is what go list says of a package.
type goPackage struct {
	Dir, ImportPath                    string
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

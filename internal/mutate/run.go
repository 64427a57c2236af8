// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A tester is a package whose tests execute lines of the targets.
type tester struct {
	*goPackage
	took    time.Duration
	covered coveredLines
}

// measure runs the tests of a package without any mutant.
func measure(ctx context.Context, p *goPackage, targets []string, dir string, limit time.Duration) (*tester, error) {
	profile := filepath.Join(dir, strings.ReplaceAll(p.ImportPath, "/", "_")+".cover")
	begin := time.Now()
	out, err := goTest(ctx, p, limit, "-coverprofile="+profile, "-coverpkg="+strings.Join(targets, ","))
	if err != nil {
		return nil, fmt.Errorf("the tests of %s fail without a mutant: %w\n%s", p.ImportPath, err, out)
	}
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	covered, err := parseProfile(f)
	return &tester{p, time.Since(begin), covered}, err
}

func goTest(ctx context.Context, p *goPackage, limit time.Duration, flags ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute) // more than the test itself has, to compile it
	defer cancel()
	args := append([]string{"test", "-count=1", "-failfast", "-vet=off", "-timeout=" + limit.String()}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, p.ImportPath)...)
	cmd.Dir = p.Module.Dir
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

// An outcome is what became of a mutant.
type outcome string

const (
	killed    outcome = "killed"
	survived  outcome = "survived"
	uncovered outcome = "uncovered" // no test executes the line
	invalid   outcome = "invalid"   // it does not compile
)

// run tests a mutant. The last result is the package whose tests killed it.
func run(ctx context.Context, m mutant, testers []*tester, limit time.Duration) (outcome, string, error) {
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
	for _, t := range order(m, testers) {
		out, err := goTest(ctx, t.goPackage, min(limit, 3*t.took+10*time.Second), "-overlay="+overlay)
		switch {
		case ctx.Err() != nil:
			return "", "", ctx.Err()
		case err == nil:
			result = survived
		case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
			return invalid, "", nil
		default:
			return killed, t.ImportPath, nil
		}
	}
	return result, "", nil
}

// overlay writes the changed file, and the file that tells go test of it.
func (m mutant) overlay(dir string) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: changed}})
	return overlay, errors.Join(err, os.WriteFile(changed, m.apply(source), 0o600), os.WriteFile(overlay, replace, 0o600))
}

// order returns the testers that execute a mutant: of its own package, then the quickest.
func order(m mutant, testers []*tester) []*tester {
	covering := slices.DeleteFunc(slices.Clone(testers), func(t *tester) bool { return !t.covered.has(m) })
	slices.SortStableFunc(covering, func(a, b *tester) int {
		if own := b.ImportPath == m.pkg; own != (a.ImportPath == m.pkg) {
			return map[bool]int{true: 1, false: -1}[own]
		}
		return int(a.took - b.took)
	})
	return covering
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// smallest measures programs with one tool over stdio, built as for a release. Startup time
// has no bar: the schema validator compiles the metaschemas of all drafts at startup, which
// every program pays so that a schema has the same meaning in all of them.
func smallest() workload {
	return workload{name: "the smallest program over stdio", begin: building, rows: []row{{measure: wall}, {measure: size, most: 6.5}, {measure: modules}}}
}

// building builds a program. It needs the go command and the source of this module.
func building(ctx context.Context, sideName string) (session, error) {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "server")
	pkg := "github.com/go-psi/psi/internal/tools/compare/smallest/" + strings.ReplaceAll(sideName, "-", "")
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-trimpath", "-o", path, pkg) //nolint:gosec // of constants
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")                                                   // so that a C compiler on the machine makes no difference
	if text, err := cmd.CombinedOutput(); err != nil {
		err = fmt.Errorf("%w: %s (run it in its directory: go -C internal/tools/compare run .)", err, text)
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &program{dir, path}, nil
}

type program struct{ dir, path string }

func (p *program) close() error { return os.RemoveAll(p.dir) }

// sample starts the program several times.
func (p *program) sample(limit limit) (sample, error) {
	info, err := os.Stat(p.path)
	if err != nil {
		return nil, err
	}
	linked, err := buildinfo.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	starts := make([]float64, 31)
	if limit.Count > 0 {
		starts = starts[:1]
	}
	for i := range starts {
		took, err := p.start()
		if err != nil {
			return nil, err
		}
		starts[i] = took.Seconds() * 1e3
	}
	return sample{wall: median(starts), size: megabytes(info), modules: float64(len(linked.Deps))}, nil
}

func megabytes(info fs.FileInfo) float64 { return float64(info.Size()) / 1e6 }

// start returns the time from starting the program to its first answer.
func (p *program) start() (took time.Duration, err error) {
	cmd := exec.Command(p.path) //nolint:gosec,noctx // it was built above, and ends with its standard input
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	message := slices.Concat(modern.add().message(nil, firstID), []byte("\n"))
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Close(), cmd.Wait()) }()
	if _, err := in.Write(message); err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return 0, err
	}
	return time.Since(begin), checkAdd(line, firstID)
}

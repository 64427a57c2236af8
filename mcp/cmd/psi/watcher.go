// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/printable"
)

// A watcher looks for changed files in a directory and below. It polls: each system
// has its own way of notifying, and all of them miss changes on some file systems.
type watcher struct {
	dir      string
	patterns []string
	seed     maphash.Seed
	seen     uint64 // of the names, sizes and times of all files
}

// sources are the files that are watched without other patterns: code and templates, but not
// data, which a server may write itself.
var sources = []string{
	"*.go", "go.mod", "go.sum", "go.work", "*.py", "*.js", "*.mjs", "*.cjs", "*.ts", "*.rb", "*.rs", "*.java", "*.kt", "*.cs", "*.php",
	"*.html", "*.css", "*.tmpl", ".env",
}

// maxWatched is how many files are looked at. More are in a directory that is not meant.
const maxWatched = 100_000

// look remembers the files as they are now. It returns an error if there are too many.
func (w *watcher) look() error {
	if w.seed == (maphash.Seed{}) {
		w.seed = maphash.MakeSeed()
	}
	if w.patterns == nil {
		w.patterns = sources
	}
	var sum maphash.Hash
	sum.SetSeed(w.seed)
	files := 0
	dir, err := filepath.EvalSymlinks(w.dir) // which WalkDir does not follow
	if err != nil {
		dir = w.dir
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch name := filepath.Base(path); {
		case err != nil && path == dir:
			return err
		case err != nil:
			return nil //nolint:nilerr // it has just been removed, or is private
		case entry.IsDir() && path != dir && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "vendor"):
			return fs.SkipDir
		case entry.IsDir() || !matchesAny(w.patterns, name) || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		if files++; files > maxWatched {
			return fmt.Errorf("more than %d files would be watched; choose the directory of the server with -C", maxWatched)
		}
		if info, err := entry.Info(); err == nil {
			_, _ = sum.WriteString(path)
			_ = binary.Write(&sum, binary.LittleEndian, []int64{info.Size(), info.ModTime().UnixNano()})
		}
		return nil
	})
	w.seen = sum.Sum64()
	return err
}

// next waits until files have changed and then not changed again for a while. It returns false
// if ctx is done.
func (w *watcher) next(ctx context.Context, poll time.Duration) bool {
	before := w.seen
	for {
		last := w.seen
		if async.Sleep(ctx, poll) != nil {
			return false
		}
		if err := w.look(); err == nil && w.seen != before && w.seen == last {
			return true
		}
	}
}

// maxOutputLine is how many bytes of a line of a server's standard error are shown.
const maxOutputLine = 16 << 10

// A lineWriter shows the lines that a server writes to its standard error.
type lineWriter struct {
	term *terminal
	rest []byte // the beginning of a line
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found && len(w.rest) <= maxOutputLine {
			return len(p), nil
		}
		w.term.printf("| %s\n", printable.Line(string(line[:min(len(line), maxOutputLine)])))
		w.rest = bytes.Clone(rest)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-psi/psi/mcp/recording"
	"github.com/go-psi/psi/mcp/transport"
)

// Record wraps a transport and writes its messages to w, with secrets redacted; see
// [recording.Recorder]. It panics if t or w is nil.
func Record(t transport.Transport, w io.Writer) transport.Transport {
	return recording.NewRecorder(w, nil).Transport(t)
}

// Replay returns a replay of the recording in r: a server for a client, or a client for a
// server. It fails the test if the recording cannot be read. When the test ends, it fails the
// test if a client sent something that is not in the recording. opts may be nil.
func Replay(tb testing.TB, r io.Reader, opts *recording.ReplayOptions) *recording.Replay {
	tb.Helper()
	rec, err := recording.Read(r)
	if err != nil {
		tb.Fatalf("mcptest: Replay: %v", err)
	}
	replay := recording.NewReplay(rec, opts)
	tb.Cleanup(func() {
		if err := replay.Err(); err != nil {
			tb.Errorf("mcptest: Replay: %v", err)
		}
	})
	return replay
}

// Golden compares a recording with the one in a file and fails the test with the first
// difference; see [recording.Compare]. If the flag -update is set and there is a difference,
// it writes the file instead. The package under test must define the flag:
//
//	var _ = flag.Bool("update", false, "rewrite the golden files")
//
// opts may be nil.
func Golden(tb testing.TB, file string, recorded []byte, opts *recording.CompareOptions) {
	tb.Helper()
	got, err := recording.Read(bytes.NewReader(recorded))
	if err != nil {
		tb.Fatalf("mcptest: Golden: %v", err)
	}
	want, err := readRecording(file)
	if err == nil {
		err = recording.Compare(want, got, opts)
	}
	switch {
	case err == nil:
	case isUpdating():
		if err := writeGolden(file, recorded); err != nil {
			tb.Fatalf("mcptest: Golden: %v", err)
		}
	case errors.Is(err, fs.ErrNotExist):
		tb.Errorf("mcptest: Golden: %v; run the test with -update to write the file", err)
	default:
		tb.Errorf("mcptest: Golden: %s: %v; if that is as it should be, run the test with -update", file, err)
	}
}

func readRecording(file string) (*recording.Recording, error) {
	data, err := os.ReadFile(file) //nolint:gosec // the test names it
	if err != nil {
		return nil, err
	}
	return recording.Read(bytes.NewReader(data))
}

func writeGolden(file string, recorded []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // it is part of a repository
		return err
	}
	return os.WriteFile(file, recorded, 0o644) //nolint:gosec // likewise
}

// isUpdating reports whether the test was run with -update. A flag defined by a library
// conflicts with that of the package under test.
func isUpdating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

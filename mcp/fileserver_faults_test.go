// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/internal/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

var errDisk = errors.New("the disk is broken")

// faultyFS is a file system of which one operation fails, and which counts what is open.
type faultyFS struct {
	fs.FS
	left int // operations before the one that fails
	done bool
	open int
}

func (f *faultyFS) step() error {
	if f.left--; f.left == -1 {
		f.done = true
		return errDisk
	}
	return nil
}

func (f *faultyFS) Open(name string) (fs.File, error) {
	if err := f.step(); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	f.open++
	return &faultyFile{file.(fs.ReadDirFile), f}, nil
}

type faultyFile struct {
	fs.ReadDirFile
	of *faultyFS
}

func (f *faultyFile) Stat() (fs.FileInfo, error) {
	if err := f.of.step(); err != nil {
		return nil, err
	}
	return f.ReadDirFile.Stat()
}

func (f *faultyFile) Read(p []byte) (int, error) {
	if err := f.of.step(); err != nil {
		return 0, err
	}
	return f.ReadDirFile.Read(p)
}

func (f *faultyFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if err := f.of.step(); err != nil {
		return nil, err
	}
	return f.ReadDirFile.ReadDir(n)
}

func (f *faultyFile) Close() error { f.of.open--; return f.ReadDirFile.Close() }

// bothFS makes a file of fstest one that has the methods of a directory, too.
type bothFS struct{ fstest.MapFS }

func (b bothFS) Open(name string) (fs.File, error) {
	f, err := b.MapFS.Open(name)
	if d, ok := f.(fs.ReadDirFile); err != nil || ok {
		return d, err
	}
	return struct {
		fs.File
		noDir
	}{f, noDir{}}, nil
}

type noDir struct{}

func (noDir) ReadDir(int) ([]fs.DirEntry, error) { return nil, errors.New("no directory") }

// Whichever operation of the file system fails, the answer does not say more than that,
// and every file is closed.
func TestFileServerFaults(t *testing.T) {
	files := bothFS{fstest.MapFS{"a.txt": {Data: []byte("text")}, "sub/b.bin": {Data: []byte{0, 255}}, "sub/c/d.md": {Data: []byte("# d")}}}
	var text strings.Builder
	for _, s := range []sample{
		{mcp.MethodListResources, ``}, {mcp.MethodListResources, `"cursor":"none"`},
		{mcp.MethodReadResource, `"uri":"file:///docs/a.txt"`}, {mcp.MethodReadResource, `"uri":"file:///docs/sub"`}, {mcp.MethodReadResource, `"uri":"file:///docs/sub/"`},
		{mcp.MethodReadResource, `"uri":"file:///docs/"`}, {mcp.MethodReadResource, `"uri":"file:///docs/a.txt/"`}, {mcp.MethodReadResource, `"uri":"file:///docs/none"`},
		{mcp.MethodReadResource, `"uri":"file:///docs/../a.txt"`}, {mcp.MethodReadResource, `"uri":"file:///docs/%2e"`}, {mcp.MethodReadResource, `"uri":"file:///docs/sub%2fb.bin"`},
		{mcp.MethodComplete, `"ref":{"type":"ref/resource","uri":"file:///docs/{+path}"},"argument":{"name":"path","value":"s"}`},
		{mcp.MethodComplete, `"ref":{"type":"ref/resource","uri":"file:///docs/{+path}"},"argument":{"name":"path","value":"sub/c/"}`},
		{mcp.MethodListen, `"notifications":{"resourceSubscriptions":["file:///docs/a.txt","file:///docs/none","file:///docs/sub/","file:///docs/a.txt/"]}`},
	} {
		fmt.Fprintf(&text, "> %s %s\n", s.method, s.members)
		for left := range 100 {
			faulty := &faultyFS{FS: files, left: left}
			mux := mcp.NewMux("files", "v1", quiet())
			mux.Resource(filesTemplate, mcp.FileServerFS(faulty, &mcp.FileServerOptions{PageSize: 2}))
			ctx, cancel := context.WithCancel(t.Context())
			req := mcptest.NewRequest(s.method, json.RawMessage(s.params(eras[0].meta)))
			var acknowledged string
			res, err := core.Serve(ctx, mux, req, notifier(func(_ string, params json.RawMessage) { acknowledged = string(params); cancel() }), quiet().Logger)
			cancel()
			outcome := resultOf(res, err)
			if s.method == mcp.MethodListen {
				outcome, _, _ = strings.Cut(acknowledged, `,"_meta"`)
			}
			if strings.Contains(outcome, errDisk.Error()) && err != nil && mcp.CodeOf(err) != mcp.CodeInternalError {
				t.Errorf("%s %s: %v", s.method, s.members, err)
			}
			if faulty.open != 0 {
				t.Errorf("%s %s, operation %d: %d files are open", s.method, s.members, left, faulty.open)
			}
			if !faulty.done {
				fmt.Fprintf(&text, "  without a fault: %s\n", random.ReplaceAllString(outcome, `$1"..."`))
				break
			}
			fmt.Fprintf(&text, "  operation %d: %s\n", left, random.ReplaceAllString(outcome, `$1"..."`))
		}
	}
	golden.Check(t, "files", text.String())
}

// notifier is a function that gets notifications.
type notifier func(method string, params json.RawMessage)

// Notify implements serving.Notifier.
func (n notifier) Notify(_ context.Context, method string, params json.RawMessage) error {
	n(method, params)
	return nil
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A file without a known extension has the type that its first bytes say. Text is sent as
// text, unless the type is never text.
func TestFileServerTypes(t *testing.T) {
	for _, c := range []struct {
		name, data, kind string
		isText           bool
	}{
		{"a", "\x89PNG\r\n\x1a\n", "image/png", false},
		{"a", "\xff\xd8\xff", "image/jpeg", false},
		{"a", "GIF89a", "image/gif", false},
		{"a", "%PDF-1.7", "application/pdf", false},
		{"a", "PK\x03\x04", "application/zip", false},
		{"a", "\x1f\x8b\x08", "application/gzip", false},
		{"a", "OggS", "application/ogg", false},
		{"a", "ID3", "audio/mpeg", false},
		{"a", "\x00asm", "application/wasm", false},
		{"a", "RIFF0000WEBP", "image/webp", false},
		{"a", "RIFF0000WEBPVP8 ", "image/webp", false},
		{"a", "RIFF0000WEB", "text/plain", true},
		{"a", "RIFF0000WAVE", "text/plain", true},
		{"a", "ABCD0000WEBP", "text/plain", true},
		{"a", "\x89PNG", "application/octet-stream", false},
		{"a", "hello", "text/plain", true},
		{"a", "hel\x00lo", "application/octet-stream", false},
		{"a", "hel\xfflo", "application/octet-stream", false},
		{"a.PNG", "text", "image/png", false},
		{"a.mp3", "text", "audio/mpeg", false},
		{"a.mp4", "text", "video/mp4", false},
		{"a.tar", "text", "application/x-tar", false},
		{"a.zip", "text", "application/zip", false},
		{"a.gz", "text", "application/gzip", false},
		{"a.pdf", "text", "application/pdf", false},
		{"a.wasm", "text", "application/wasm", false},
		{"a.svg", "<svg/>", "image/svg+xml", true},
		{"a.json", "{}", "application/json", true},
		{"a.go", "package a", "text/x-go", true},
		{"a.ts", "let a", "text/x-typescript", true},
		{"a.avif", "text", "image/avif", false},
		{"a.go", "\xff", "text/x-go", false},
	} {
		mux := serveFiles(mcp.FileServerFS(fstest.MapFS{c.name: {Data: []byte(c.data)}}, nil), filesTemplate)
		got, err := readURI(t, mux, "file:///docs/"+c.name)
		if err != nil || got.MIMEType != c.kind || (got.Blob == nil) != c.isText {
			t.Errorf("%s with %q: got %+v, %v", c.name, c.data, got, err)
		}
	}
}

// The type of a large file is guessed from its first 512 bytes, which may end within a
// character: it is listed as text if they are.
func TestFileServerGuessBounds(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		text bool
	}{
		"a character over the end":       {strings.Repeat("x", 511) + "üxxx", true},
		"a long character over the end":  {strings.Repeat("x", 509) + "😀xxx", true},
		"three of four bytes":            {strings.Repeat("x", 508) + "😀xxx", true},
		"half a character before it":     {strings.Repeat("x", 510) + "\xc3xxx", false},
		"binary after the first bytes":   {strings.Repeat("x", 512) + "\x00", true},
		"binary in the last of them":     {strings.Repeat("x", 511) + "\x00", false},
		"continuation bytes without any": {strings.Repeat("x", 500) + strings.Repeat("\x80", 20), false},
		"short text":                     {"ü", true},
		"half a character":               {"\xc3", false},
	} {
		mux := serveFiles(mcp.FileServerFS(fstest.MapFS{"a": {Data: []byte(c.data)}}, nil), filesTemplate)
		listed, _ := listPages(t, mux)
		if len(listed) != 1 || (listed[0].MIMEType == "text/plain") != c.text {
			t.Errorf("%s: listed %+v", name, listed)
		}
	}
}

// Windows has short names for files whose names begin with a dot. Elsewhere, such a name
// is one like any other.
func TestFileServerShortNames(t *testing.T) {
	mux := serveFiles(mcp.FileServerFS(fstest.MapFS{"GIT~1": {Data: []byte("x")}, "a~b": {Data: []byte("x")}}, nil), filesTemplate)
	for name, served := range map[string]bool{"GIT~1": runtime.GOOS != "windows", "a~b": true} {
		if _, err := readURI(t, mux, "file:///docs/"+name); (err == nil) != served {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file server needs files.
func TestFileServerWithoutFiles(t *testing.T) {
	wantPanic(t, func() { mcp.FileServerFS(nil, nil) }, "FileServerFS at filetypes_bounds_test.go")
}

// openFS counts the files that are open.
type openFS struct {
	fs.FS
	open int
}

func (o *openFS) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	if err != nil {
		return nil, err
	}
	o.open++
	if d, ok := f.(fs.ReadDirFile); ok {
		return openDir{d, o}, nil
	}
	return openFile{f, o}, nil
}

type openFile struct {
	fs.File
	of *openFS
}

func (f openFile) Close() error { f.of.open--; return f.File.Close() }

type openDir struct {
	fs.ReadDirFile
	of *openFS
}

func (d openDir) Close() error { d.of.open--; return d.ReadDirFile.Close() }

// Whatever is asked of a file server, it closes what it has opened.
func TestFileServerClosesFiles(t *testing.T) {
	files := &openFS{FS: fstest.MapFS{"a": {Data: []byte("x")}, "large": {Data: make([]byte, 100)}, "dir/b.md": {}, "dir/sub/c": {}, ".hidden": {}}}
	mux := serveFiles(mcp.FileServerFS(files, &mcp.FileServerOptions{MaxBytes: 10}), filesTemplate)
	check := func(what string) {
		if files.open != 0 {
			t.Errorf("after %s, %d files are open", what, files.open)
			files.open = 0
		}
	}
	for _, path := range []string{"a", "large", "dir", "dir/", "dir/sub/", "dir/b.md", "", ".hidden", "none", "a/", "a/b", "dir/none"} {
		_, _, _ = mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "file:///docs/" + path}))
		check("reading " + path)
		_, _, _ = mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{
			Ref: mcp.CompleteRef{Type: "ref/resource", URI: filesTemplate}, Argument: mcp.CompleteArgument{Name: "path", Value: path},
		}))
		check("completing " + path)
	}
	if listed, _ := listPages(t, mux); len(listed) == 0 {
		t.Error("nothing is listed")
	}
	check("listing")
}

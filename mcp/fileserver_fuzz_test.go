// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// guarded is a file system that reports access to anything that may not be served.
type guarded struct {
	fstest.MapFS
	t *testing.T
}

func (g guarded) check(op, name string) {
	if !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") || name != "." && strings.Contains("/"+name, "/.") {
		g.t.Errorf("%s %q", op, name)
	}
}

func (g guarded) Open(name string) (fs.File, error) {
	g.check("open", name)
	if info, err := g.MapFS.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		g.t.Errorf("a link was opened: %q", name)
	}
	return g.MapFS.Open(name)
}

func (g guarded) Lstat(name string) (fs.FileInfo, error) {
	g.check("lstat", name)
	return g.MapFS.Lstat(name)
}

func (g guarded) Stat(name string) (fs.FileInfo, error) {
	g.check("stat", name)
	return g.MapFS.Stat(name)
}

// Whatever URI or cursor a client sends, only public files are accessed, and everything
// else is answered with a not found error.
func FuzzFileServer(f *testing.F) {
	for _, path := range []string{"a.txt", "", "sub/", "../a", "..%2fa", "%2e%2e/a", ".env", "a.txt%00", "sub%5Cb.txt", "link", "link/x", "%", "é", "a?b#c"} {
		f.Add(path)
	}
	files := fstest.MapFS{
		"a.txt": {Data: []byte("public")}, "sub/b.txt": {Data: []byte("public")}, "é": {Data: []byte("public")},
		".env": {Data: []byte("SECRET")}, "sub/.git/config": {Data: []byte("SECRET")},
		"link": {Data: []byte(".env"), Mode: fs.ModeSymlink}, "dirlink": {Data: []byte("sub/.git"), Mode: fs.ModeSymlink},
	}
	f.Fuzz(func(t *testing.T, path string) {
		h := mcp.FileServerFS(guarded{files, t}, nil)
		mux := serveFiles(h, filesTemplate)
		uri := "file:///docs/" + path
		req, err := mcp.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Skip("not UTF-8")
		}
		res, _, err := mcptest.Do(t, mux, req)
		if err != nil {
			if !isNotFound(err, uri) {
				t.Errorf("%q: %v", uri, err)
			}
			return
		}
		c := res.(*mcp.ReadResourceResult).Contents[0]
		if c.MIMEType != "inode/directory" && c.Text != "public" {
			t.Errorf("%q: got %+v", uri, c)
		}
		if strings.Contains(c.Text, "git") || strings.Contains(c.Text, "env") || strings.Contains(c.Text, "link") {
			t.Errorf("%q: got %q", uri, c.Text)
		}
	})
}

func FuzzFileServerCursor(f *testing.F) {
	for _, cursor := range []string{"", ".", "a", "sub", "sub/b", "sub/.git", "../..", "sub/.git/config", "link/x", "/", "a//b"} {
		f.Add(cursor)
	}
	files := fstest.MapFS{"a": {}, "sub/b": {}, "sub/.git/config": {}, "link": {Data: []byte("sub"), Mode: fs.ModeSymlink}, "z": {}}
	f.Fuzz(func(t *testing.T, cursor string) {
		h := mcp.LimitPages(mcp.FileServerFS(guarded{files, t}, nil), 1)
		seen, at := 0, &cursor
		for range 10 {
			page, err := mcp.ListFiles(t.Context(), h, filesTemplate, at)
			if err != nil {
				if mcp.CodeOf(err) != mcp.CodeInvalidParams || seen > 0 {
					t.Errorf("%q: %v", *at, err)
				}
				return
			}
			seen += len(page.Resources)
			if at = page.NextCursor; at == nil {
				break
			}
		}
		if at != nil || seen > 3 {
			t.Errorf("%q: %d files of 3, and then %v", cursor, seen, at)
		}
	})
}

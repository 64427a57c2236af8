// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package mcp_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// rootServer serves a directory.
func rootServer(t *testing.T, dir string, opts *mcp.FileServerOptions) *mcp.Mux {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return serveFiles(mcp.FileServerRoot(root, opts), filesTemplate)
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func symlinks(t *testing.T, dir string, links map[string]string) {
	t.Helper()
	for link, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
}

// replaceAlways replaces a name in turn by what some functions make, until the test ends.
func replaceAlways(t *testing.T, path string, makers ...func(path string) error) {
	t.Helper()
	var stop atomic.Bool
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; !stop.Load(); i++ {
			next := path + ".next"
			if err := makers[i%len(makers)](next); err != nil {
				t.Error(err)
				return
			}
			if err := os.Rename(next, path); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	t.Cleanup(func() { stop.Store(true); <-stopped })
}

// What becomes a named pipe after it was looked at holds nobody up.
func TestFindingS13NamedPipe(t *testing.T) {
	dir := t.TempDir()
	mux := rootServer(t, dir, nil)
	plain := func(path string) error { return os.WriteFile(path, []byte("text"), 0o600) }
	if err := mkfifo(filepath.Join(t.TempDir(), "pipe")); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	for _, name := range []string{"a.txt", "noextension"} { // the type of the latter is guessed
		if err := plain(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		replaceAlways(t, filepath.Join(dir, name), plain, mkfifo)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			if c, err := readURI(t, mux, "file:///docs/a.txt"); err == nil && c.Text != "text" || err != nil && !isNotFound(err, "file:///docs/a.txt") {
				t.Errorf("got %+v, %v", c, err)
			}
			listPage(t, mux, nil)
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("reading hangs")
	}
}

// linkedDir has links of every kind to what is hidden in it.
func linkedDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		".env": "SECRET", ".git/config": "SECRET", "sub/.netrc": "SECRET", "sub/deep/x.txt": "public", "a.txt": "public",
	})
	symlinks(t, dir, map[string]string{
		"env": ".env", "env2": "env", "env3": "sub/../.env", "env4": "sub/deep/../../.env", "git": ".git", "config": ".git/config",
		"sub/up": "../.git", "sub/env": "../.env", "sub/rc": ".netrc", "around": ".git/../a.txt", "dot": "./.env", "slash": ".git/",
		"in": "sub", "in2": "in/deep", "sub/turn": "deep/../../a.txt", "x": "in2/x.txt", "y": "./sub/../in/deep//x.txt", "sub/self": ".", "top": "sub/..", "loop1": "loop2", "loop2": "loop1",
	})
	return dir
}

// A link to what is hidden is as hidden, however many links and turns lead there.
func TestFindingS21HiddenByLink(t *testing.T) {
	mux := rootServer(t, linkedDir(t), nil)
	for _, path := range []string{
		"env", "env2", "env3", "env4", "git", "git/config", "config", "sub/up", "sub/up/config", "sub/env", "sub/rc", "around", "dot", "slash", "slash/config",
		"in/rc", "in/env", "in/up/config", "sub/self/rc", "sub/self/self/rc", "top/env", "top/sub/rc", "loop1",
	} {
		if c, err := readURI(t, mux, "file:///docs/"+path); !isNotFound(err, "file:///docs/"+path) {
			t.Errorf("%s: got %+v, %v", path, c, err)
		}
	}
	for _, path := range []string{"a.txt", "sub/deep/x.txt", "in/deep/x.txt", "in2/x.txt", "x", "y", "sub/turn", "sub/self/deep/x.txt", "top/a.txt", "top/in/deep/x.txt"} {
		if c, err := readURI(t, mux, "file:///docs/"+path); err != nil || c.Text != "public" {
			t.Errorf("%s: %v", path, err)
		}
	}
	listed, _ := listPages(t, mux)
	if got, want := namesOf(listed), []string{"a.txt", "sub/deep/x.txt", "sub/turn", "x", "y"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	if c, err := readURI(t, mux, "file:///docs/"); err != nil || c.Text != "a.txt\nin/\nin2/\nsub/\ntop/\nx\ny\n" {
		t.Errorf("the directory has %q, %v", c.Text, err)
	}
	for typed, want := range map[string][]string{"e": nil, "git/": nil, "in/": {"in/deep/", "in/self/", "in/turn"}} {
		res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{
			Ref: mcp.CompleteRef{Type: "ref/resource", URI: filesTemplate}, Argument: mcp.CompleteArgument{Name: "path", Value: typed},
		}))
		if err != nil {
			t.Fatal(err)
		}
		if got := res.(*mcp.CompleteResult).Completion.Values; !slices.Equal(got, want) {
			t.Errorf("%q completes to %q, want %q", typed, got, want)
		}
	}
}

// With Hidden, links are followed within the directory.
func TestFindingS21HiddenServed(t *testing.T) {
	mux := rootServer(t, linkedDir(t), &mcp.FileServerOptions{Hidden: true})
	for _, path := range []string{"env4", "git/config", "sub/up/config", "in/rc", ".env"} {
		if c, err := readURI(t, mux, "file:///docs/"+path); err != nil || c.Text != "SECRET" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What becomes a link to something hidden after it was looked at, or in its midst, is
// not followed there.
func TestFindingS21Race(t *testing.T) {
	dir := linkedDir(t)
	mux := rootServer(t, dir, nil)
	writeFiles(t, dir, map[string]string{"dir/config": "public", ".git/x.txt": "SECRET"})
	link := func(target string) func(string) error {
		return func(path string) error { return os.Symlink(target, path) }
	}
	replaceAlways(t, filepath.Join(dir, "file"), link("a.txt"), link(".env"), func(path string) error { return os.WriteFile(path, []byte("public"), 0o600) })
	replaceAlways(t, filepath.Join(dir, "tree"), link("dir"), link(".git"))
	for range 2000 {
		for _, path := range []string{"file", "tree/config"} {
			if c, err := readURI(t, mux, "file:///docs/"+path); err == nil && strings.Contains(c.Text, "SECRET") {
				t.Fatalf("%s: got %q", path, c.Text)
			}
		}
	}
}

// Names that some file system takes for one that begins with a dot are hidden as well.
func TestFindingS21OtherNamesOfHidden(t *testing.T) {
	dir := t.TempDir()
	names := []string{"\u200c.env", "\u200d\ufeff.env", "\u202e.git"}
	for _, name := range names {
		writeFiles(t, dir, map[string]string{name: "SECRET"})
	}
	mux := rootServer(t, dir, nil)
	for _, name := range names {
		uri := "file:///docs/" + (&url.URL{Path: name}).EscapedPath()
		if c, err := readURI(t, mux, uri); !isNotFound(err, uri) {
			t.Errorf("%s: got %+v, %v", uri, c, err)
		}
	}
	if listed, _ := listPages(t, mux); len(listed) > 0 {
		t.Errorf("listed %q", namesOf(listed))
	}
}

// A tree that others made deep, or links that lead back and forth, do not use up the
// descriptors and the time of the server.
func TestFindingS21DeepTrees(t *testing.T) {
	dir := t.TempDir()
	deep := strings.Repeat("d/", 240)
	writeFiles(t, dir, map[string]string{deep + "x.txt": "public", deep + strings.Repeat("d/", 30) + "y.txt": "too deep"})
	symlinks(t, dir, map[string]string{"turns": strings.Repeat("d/../", 700) + deep + "x.txt"})
	mux := rootServer(t, dir, nil)
	if c, err := readURI(t, mux, "file:///docs/"+deep+"x.txt"); err != nil || c.Text != "public" {
		t.Errorf("got %+v, %v", c, err)
	}
	for _, path := range []string{deep + strings.Repeat("d/", 30) + "y.txt", "turns"} {
		if c, err := readURI(t, mux, "file:///docs/"+path); !isNotFound(err, "file:///docs/"+path) {
			t.Errorf("%.40s: got %+v, %v", path, c, err)
		}
	}
	if listed, _ := listPages(t, mux); len(listed) != 1 {
		t.Errorf("listed %d files, want 1", len(listed))
	}
}

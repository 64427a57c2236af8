// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package mcp_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// secretDir creates a directory to serve that contains links and other traps, next to files
// that must not be served. Every secret contains the word SECRET.
func secretDir(t *testing.T) (served string) {
	t.Helper()
	dir := t.TempDir()
	served = filepath.Join(dir, "served")
	for name, text := range map[string]string{
		"secret.txt": "SECRET", "served2/x.txt": "SECRET",
		"served/a.txt": "public", "served/sub/b.txt": "public", "served/%2e%2e/odd.txt": "public",
		"served/.env": "SECRET", "served/.git/config": "SECRET", "served/sub/.hidden": "SECRET",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"out.txt": "../secret.txt", "out": "..", "absolute": dir, "sub/up": "../..", "abs.txt": filepath.Join(dir, "secret.txt"),
		"in.txt": "a.txt", "in": "sub", "loop": "loop", "dangling": "nowhere",
	} {
		if err := os.Symlink(target, filepath.Join(served, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	if err := mkfifo(filepath.Join(served, "pipe")); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	return served
}

// escapes contains paths that must not be found. Opening the pipe of secretDir would hang.
var escapes = []string{
	"../secret.txt", "sub/../../secret.txt", "..", ".", "./a.txt", "sub/..", "sub/../a.txt", "sub/./b.txt",
	"%2e%2e/secret.txt", "%2E%2E/secret.txt", ".%2e/secret.txt", "%2e%2e%2fsecret.txt", "..%2Fsecret.txt", "..%2fsecret.txt",
	"sub%2Fb.txt", "sub%2fb.txt", "%252e%252e/secret.txt", "%252e%252e%252fsecret.txt",
	"/secret.txt", "//secret.txt", "%2Fetc/passwd", "/etc/passwd", "///etc/passwd", "file:///etc/passwd", "//etc/passwd",
	"..\\secret.txt", "..%5Csecret.txt", "..%5csecret.txt", "sub%5Cb.txt", "%5C%5Chost%5Cshare", "C:%5Csecret.txt", "C:/secret.txt",
	"a.txt%00", "a.txt%00.png", "%00", "..%00/secret.txt", "sub/%00/b.txt",
	"a.txt/", "a.txt/.", "a.txt/..", "a.txt/../a.txt", "a.txt/b.txt", "sub//b.txt", "sub/b.txt//", "/", "//",
	"a.txt?", "a.txt?x=1", "a.txt#", "?", "#", "a.txt%20", "a.txt%2e", "a.txt.", "%ff", "%C0%AE%C0%AE/secret.txt", "%c0%af",
	".env", "%2eenv", ".git", ".git/", ".git/config", "sub/.hidden", "../served2/x.txt",
	"out.txt", "out", "out/secret.txt", "out/served/a.txt", "absolute", "absolute/secret.txt", "sub/up/secret.txt", "abs.txt",
	"loop", "loop/a.txt", "dangling", "pipe", "pipe/", "nowhere", "nowhere/", "sub/nowhere",
	strings.Repeat("../", 40) + "etc/passwd", strings.Repeat("a/", 3000), strings.Repeat("x", 9000),
}

func TestFileServerEscapes(t *testing.T) {
	dir := secretDir(t)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	servers := map[string]mcp.Handler{
		"FS":   mcp.FileServerFS(os.DirFS(dir), nil),
		"Root": mcp.FileServerRoot(root, nil),
	}
	inside := []string{"in.txt", "in", "in/b.txt"} // links that only FileServerRoot follows
	for name, h := range servers {
		t.Run(name, func(t *testing.T) {
			mux := serveFiles(h, filesTemplate)
			for _, path := range escapes {
				if c, err := readURI(t, mux, "file:///docs/"+path); err == nil || !isNotFound(err, "file:///docs/"+path) {
					t.Errorf("%.80q: got %+v, %v", path, c, err)
				}
			}
			for _, path := range inside {
				_, err := readURI(t, mux, "file:///docs/"+path)
				if followed := err == nil; followed != (name == "Root") {
					t.Errorf("%s: %v", path, err)
				}
			}
			for _, path := range []string{"a.txt", "sub/b.txt", "%252e%252e/odd.txt", "%61.txt", "s%75b/b.txt"} {
				if c, err := readURI(t, mux, "file:///docs/"+path); err != nil || c.Text != "public" {
					t.Errorf("%s: %v", path, err)
				}
			}
			listed, _ := listPages(t, mux)
			want := []string{"%2e%2e/odd.txt", "a.txt", "sub/b.txt"}
			if name == "Root" {
				want = []string{"%2e%2e/odd.txt", "a.txt", "in.txt", "sub/b.txt"}
			}
			if got := namesOf(listed); !slices.Equal(got, want) {
				t.Errorf("listed %q, want %q", got, want)
			}
			for _, r := range listed {
				if _, err := readURI(t, mux, r.URI); err != nil {
					t.Errorf("listed, but: %v", err)
				}
			}
		})
	}
}

// A file server leaves no file open, whatever is requested from it.
func TestFileServerLeavesNoFileOpen(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // because the garbage collector closes files, too
	dir := secretDir(t)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, h := range map[string]mcp.Handler{"FS": mcp.FileServerFS(os.DirFS(dir), nil), "Root": mcp.FileServerRoot(root, nil)} {
		mux := serveFiles(h, filesTemplate)
		c := connect(t, mux, nil)
		use := func() (left int) {
			for _, path := range slices.Concat(escapes, []string{"", "a.txt", "a.txt/", "in.txt", "in/b.txt", "in/../sub/b.txt", "sub/", "sub/b.txt"}) {
				_, _ = readURI(t, mux, "file:///docs/"+path)
			}
			listPages(t, mux)
			for _, typed := range []string{"", "a", "sub/", "a.txt/", "in/", "none/"} {
				_, _ = c.Complete(t.Context(), &mcp.CompleteParams{
					Ref: mcp.CompleteRef{Type: "ref/resource", URI: filesTemplate}, Argument: mcp.CompleteArgument{Name: "path", Value: typed},
				})
			}
			filter := mcp.SubscriptionFilter{ResourceSubscriptions: []string{"file:///docs/a.txt", "file:///docs/a.txt/", "file:///docs/sub/", "file:///docs/none"}}
			s, err := c.Listen(t.Context(), filter, func(mcp.Change) {})
			if err != nil || len(s.Accepted().ResourceSubscriptions) != 2 {
				t.Errorf("%s: accepted %v, %v", name, s, err)
			}
			s.Close()
			<-s.Done()
			return open()
		}
		if before, after := use(), use(); before != after {
			t.Errorf("%s: %d files were open, and then %d", name, before, after)
		}
	}
}

// rootServer returns a mux that serves a directory.
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

// replaceAlways keeps replacing a file with the results of makers, in turn, until the test
// ends.
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

// Opening a file does not block if it is replaced by a named pipe after it was inspected.
func TestFindingS13NamedPipe(t *testing.T) {
	dir := t.TempDir()
	mux := rootServer(t, dir, nil)
	plain := func(path string) error { return os.WriteFile(path, []byte("text"), 0o600) }
	if err := mkfifo(filepath.Join(t.TempDir(), "pipe")); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	for _, name := range []string{"a.txt", "noextension"} { // the type of noextension is guessed
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

// linkedDir creates a directory with all kinds of links to hidden files.
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

// A link to a hidden file is hidden, whatever chain of links and parent directories leads
// there.
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

// With Hidden, links within the directory are followed.
func TestFindingS21HiddenServed(t *testing.T) {
	mux := rootServer(t, linkedDir(t), &mcp.FileServerOptions{Hidden: true})
	for _, path := range []string{"env4", "git/config", "sub/up/config", "in/rc", ".env"} {
		if c, err := readURI(t, mux, "file:///docs/"+path); err != nil || c.Text != "SECRET" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// If a file, or a directory on its path, is replaced by a link to something hidden after it
// was inspected, the link is not followed.
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

// Names that some file systems treat as beginning with a dot are hidden as well.
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

// Deep trees, and links with many steps back and forth, exhaust neither file descriptors
// nor time.
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

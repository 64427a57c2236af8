// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package mcp_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// secretDir is a directory to serve, next to what must not be served, with links
// and other traps in it. Every secret contains the word SECRET.
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

// escapes are URIs of nothing. That of secretDir's pipe would hang.
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
	inside := []string{"in.txt", "in", "in/b.txt"} // links that only a root may follow
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

// A file server leaves no file open, whatever it is asked for.
func TestFileServerLeavesNoFileOpen(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the garbage collector closes files, too
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
			if err != nil || len(s.Accepted.ResourceSubscriptions) != 2 {
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

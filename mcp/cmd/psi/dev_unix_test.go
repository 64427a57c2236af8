// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix && !aix

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A devSession is psi dev, and a client that is connected to it.
type devSession struct {
	*testing.T

	conn    *mcp.Conn
	changed chan mcp.Change
	said    chan string // what psi writes to standard error
	log     string
}

// startDev runs psi dev in the working directory, with a client of a version. A client that
// gets no answer to its first request fails the test.
func startDev(t *testing.T, version string, words ...string) *devSession {
	t.Helper()
	s := &devSession{T: t, said: make(chan string, 1000), changed: make(chan mcp.Change, 100)}
	fromServer, out := io.Pipe()
	in, toServer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(context.Background(), append([]string{"dev", "-poll", "10ms"}, words...), in, out, lines(s.said))
	}()
	s.conn = mcptest.Dial(t, streamTransport{fromServer, toServer}, &mcp.ClientOptions{Version: version})
	sub, err := s.conn.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(c mcp.Change) { s.changed <- c })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sub.Close()
		_ = s.conn.Close()
		if code := <-ended; code != exitOK {
			t.Errorf("psi dev ended with %d", code)
		}
	})
	return s
}

// hears waits until psi has written a text.
func (s *devSession) hears(want string) {
	s.Helper()
	for !strings.Contains(s.log, want) {
		select {
		case text := <-s.said:
			s.log += text
		case <-s.Context().Done():
			s.Fatalf("it wrote %s, want %s", s.log, want)
		}
	}
	_, s.log, _ = strings.Cut(s.log, want)
}

// tools returns the number of tools that the client sees.
func (s *devSession) tools() int {
	s.Helper()
	n := 0
	for _, err := range s.conn.Tools(s.Context(), nil) {
		if err != nil {
			s.Fatal(err)
		}
		n++
	}
	return n
}

// toolsBecome waits until the client has been told that the list has changed, and sees n tools.
func (s *devSession) toolsBecome(n int) {
	s.Helper()
	for s.tools() != n {
		<-s.changed
	}
}

// A client stays connected while the server that it uses is changed, and learns that its tools
// may be others.
func TestDevRestarts(t *testing.T) {
	isolate(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		t.Run(version, func(t *testing.T) {
			t.Chdir(t.TempDir())
			script := func(kind string) {
				writeScript(t, "next", fmt.Sprintf("#!/bin/sh\necho 'I am \033[2J%s' >&2\n%s=%s exec %s\n", kind, isServer, kind, self))
				if err := os.Rename("next", "server.sh"); err != nil {
					t.Fatal(err)
				}
			}
			script("yes")
			s := startDev(t, version, "-watch", "*.sh", "--", "./server.sh")
			if n := s.tools(); n != 2 {
				t.Fatalf("%d tools", n)
			}
			s.hears(`| I am \x1b[2Jyes` + "\n")
			s.hears("the server runs: kitchen v1.0.0, revision ")
			script("more")
			s.hears("a file has changed\n")
			s.toolsBecome(7)
			writeFile(t, "data.txt", "not watched")
			// A server that ends is started again, and its last words are shown.
			writeScript(t, "next", "#!/bin/sh\necho broken >&2; exit 3\n")
			if err := os.Rename("next", "server.sh"); err != nil {
				t.Fatal(err)
			}
			s.hears("the server does not run: ")
			s.hears("exit status 3")
			script("stuck")
			// What is in flight when the server is replaced is asked of the next one, if it
			// changes nothing.
			found := make(chan int, 1)
			s.hears("the server runs")
			go func() { found <- s.tools() }()
			s.hears("| stuck\n")
			script("yes")
			if n := <-found; n != 2 {
				t.Errorf("%d tools", n)
			}
		})
	}
}

// While the program does not build, the last one that did keeps running.
func TestDevBuilds(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := func(kind string) {
		writeFile(t, dir+"/main.go", fmt.Sprintf(`package main

import (
	"os"
	"syscall"
)

func main() {
	if len(os.Args) != 3 || os.Args[2] != "-v" {
		panic("wrong arguments")
	}
	panic(syscall.Exec(os.Args[1], os.Args[1:2], append(os.Environ(), %q)))
}
`, isServer+"="+kind))
	}
	writeFile(t, dir+"/go.mod", "module example.com/server\n\ngo 1.26.0\n")
	program("yes")
	s := startDev(t, "", "-C", dir, "--", "go", "run", "-trimpath", "-tags", "a", ".", self, "-v")
	if n := s.tools(); n != 2 {
		t.Fatalf("%d tools", n)
	}
	s.hears("built in ")
	writeFile(t, dir+"/main.go", "package main\n\nfunc main() { undefined() }\n")
	s.hears("the build failed:\n")
	s.hears("undefined: undefined")
	if n := s.tools(); n != 2 {
		t.Errorf("%d tools while the program does not build", n)
	}
	program("more")
	s.toolsBecome(7)
}

// The page about the server stays while the server is restarted.
func TestDevInspect(t *testing.T) {
	isolate(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv(isServer, "yes")
	writeFile(t, "a.go", "")
	s := startDev(t, "", "-inspect", "--", self)
	s.hears("serving at ")
	for !strings.Contains(s.log, "\n") {
		s.log += <-s.said
	}
	page, _, _ := strings.Cut(s.log, "\n")
	for range 2 {
		res, err := http.Get(page + "?view=registered")
		if err != nil {
			t.Fatal(err)
		}
		if text := readBody(t, res); !strings.Contains(text, "Write a report.") {
			t.Errorf("the page has %s", text)
		}
		writeFile(t, "a.go", "package a")
		s.hears("the server runs")
	}
}

// Sources are watched, but neither data nor what tools have put there.
func TestWatcher(t *testing.T) {
	dir := t.TempDir()
	w := &watcher{dir: dir}
	look := func() uint64 {
		t.Helper()
		if err := w.look(); err != nil {
			t.Fatal(err)
		}
		return w.seen
	}
	for name, isWatched := range map[string]bool{
		"a.go": true, "go.mod": true, "sub/a.html": true, ".env": true, "a.txt": false, "a_test.go": false, "data.json": false,
		"node_modules/a.js": false, "vendor/a.go": false, ".git/a.go": false, "sub/.cache/a.go": false,
	} {
		writeScript(t, filepath.Join(dir, name), "1")
		before := look()
		writeScript(t, filepath.Join(dir, name), "22")
		if isChanged := look() != before; isChanged != isWatched {
			t.Errorf("%s: %t, want %t", name, isChanged, isWatched)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	w.dir = link
	before := look()
	if err := os.Rename(filepath.Join(dir, "a.go"), filepath.Join(dir, "b.go")); err != nil {
		t.Fatal(err)
	}
	if look() == before {
		t.Error("another name is no change")
	}
}

// What the server writes is shown line by line, and a line that does not end in pieces.
func TestServerOutput(t *testing.T) {
	var out strings.Builder
	w := &lineWriter{term: newTerminal(nil, &out)}
	for _, text := range []string{"one\ntw", "o\x1b[2J\n", strings.Repeat("x", maxOutputLine+1), "y\nend"} {
		if n, err := io.WriteString(w, text); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := "| one\n| two\\x1b[2J\n| " + strings.Repeat("x", maxOutputLine) + "\n| y\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestDevMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"":                           "which server? give its command after --",
		"--":                         "which server?",
		"x -- y":                     `what is "x"? the command of the server is after --`,
		"-poll 0s -- y":              "-poll must be positive",
		"-watch [ -- y":              `-watch "[" is not a pattern`,
		"-C /no/such/directory -- y": "/no/such/directory",
		"-http 0.0.0.0:8080 -- y":    "other machines can reach",
	} {
		if got := psi(t, "", append([]string{"dev"}, strings.Fields(args)...)...); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: exit code %d, wrote %q, want %s", args, got.code, got.errOut, want)
		}
	}
}

// What go run would build is built, and the other arguments are those of the program.
func TestGoBuild(t *testing.T) {
	for line, want := range map[string]string{
		"go run .":                              ". |",
		"go run ./cmd/x -v ./y":                 "./cmd/x | -v ./y",
		"go run -race -tags a,b main.go b.go x": "-race -tags a,b main.go b.go | x",
		"/usr/bin/go run -ldflags=-s . -- a":    "-ldflags=-s . | -- a",
	} {
		build, args, ok := goBuild(strings.Fields(line))
		if got := strings.TrimSpace(strings.Join(build, " ") + " | " + strings.Join(args, " ")); got != want || !ok {
			t.Errorf("%s: got %q, %t, want %q", line, got, ok, want)
		}
	}
	for flag := range takesValue {
		if build, args, ok := goBuild([]string{"go", "run", flag, "value", ".", "x"}); !ok || len(build) != 3 || len(args) != 1 {
			t.Errorf("%s: got %q, %q, %t", flag, build, args, ok)
		}
	}
	for _, line := range []string{"go run", "go test .", "python go run .", "go run -exec x .", "go run -tags", "go run -v", filepath.Join("a", "server")} {
		if _, _, ok := goBuild(strings.Fields(line)); ok {
			t.Errorf("%s: it would be built", line)
		}
	}
}

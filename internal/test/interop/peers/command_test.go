// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// generated is the import path of the generated packages. The directory does not exist: an
// overlay provides the files.
const generated = "github.com/go-psi/psi/internal/test/interop/peers/generated"

// A bench holds the state of the tests of the command psi.
type bench struct {
	dir     string // contains hello.txt and everything built or generated
	psi     string // path of the command
	clients []published
}

// TestCommand runs the command psi to list, call, read and lint published servers, and to
// generate a client for each. It then compiles all clients into one program, in which each
// calls its server.
func TestCommand(t *testing.T) {
	if os.Getenv(needEnv) == "" {
		t.Skip("it starts more than a hundred processes: run internal/test/interop/run.sh")
	}
	b := &bench{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(b.dir, "hello.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.psi = b.build(t, "../../../..", "psi", "github.com/go-psi/psi/mcp/cmd/psi")
	for _, s := range publishedServers {
		t.Run(s.name, func(t *testing.T) {
			server := b.command(t, s)
			b.list(t, s, server)
			if out := b.run(t, slices.Concat([]string{"call"}, b.words(s.call), server)...); !strings.Contains(out, s.says) {
				t.Errorf("psi call %q wrote %s, want %s", s.call, out, s.says)
			}
			if s.read != "" {
				if out := b.run(t, slices.Concat([]string{"read", s.read}, server)...); !strings.Contains(out, s.reads) {
					t.Errorf("psi read %s wrote %s, want %s", s.read, out, s.reads)
				}
			}
			b.lint(t, s, server)
			b.run(t, slices.Concat([]string{"gen", "-package", s.name, "-o", b.source(s)}, server)...)
			b.clients = append(b.clients, s)
		})
	}
	program := b.compile(t)
	for _, s := range b.clients {
		t.Run("client of "+s.name, func(t *testing.T) {
			out := b.execute(t, program, append([]string{s.name}, b.command(t, s)[1:]...)...)
			if !strings.Contains(out, s.got) {
				t.Errorf("%s returned %s, want %s", s.use, out, s.got)
			}
		})
	}
}

// build builds a Go program from the directory of the module that requires it.
func (b *bench) build(t *testing.T, dir, name, pkg string, flags ...string) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	b.execute(t, "go", slices.Concat([]string{"-C", dir, "build", "-o", path}, flags, []string{pkg})...)
	return path
}

// command returns the command line of a server, after "--".
func (b *bench) command(t *testing.T, s published) []string {
	t.Helper()
	words := []string{"--"}
	if s.program == "" {
		words = append(words, node(t, filepath.Join("node_modules", s.node)).Args...)
	} else {
		path := filepath.Join(b.dir, s.name+"-server")
		if _, err := os.Stat(path); err != nil {
			path = b.build(t, ".", s.name+"-server", s.program)
		}
		words = append(words, path)
	}
	return append(words, b.words(s.args)...)
}

// words returns words with DIR replaced by the directory.
func (b *bench) words(words []string) []string {
	words = slices.Clone(words)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "DIR", b.dir)
	}
	return words
}

// run runs psi, which must succeed, and returns its standard output.
func (b *bench) run(t *testing.T, words ...string) string {
	t.Helper()
	return b.execute(t, b.psi, words...)
}

// execute runs a program, which must succeed, and returns its standard output.
func (b *bench) execute(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := b.try(t, program, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (b *bench) try(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	// Servers with persistent data store it here.
	cmd.Env = append(os.Environ(), "MEMORY_BANK_ROOT="+b.dir, "MEMORY_FILE_PATH="+filepath.Join(b.dir, "memory.jsonl"))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %q: %w\n%s%s", filepath.Base(program), args, err, out.String(), errOut.String())
	}
	return out.String(), nil
}

func (b *bench) list(t *testing.T, s published, server []string) {
	t.Helper()
	var listed struct {
		ProtocolVersion string
		Tools           []struct{ Name string }
	}
	out := b.run(t, slices.Concat([]string{"list", "-json"}, server)...)
	if err := json.Unmarshal([]byte(out), &listed); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if len(listed.Tools) != s.tools {
		t.Errorf("it has %d tools, want %d: %+v", len(listed.Tools), s.tools, listed.Tools)
	}
	t.Logf("speaks %s, has %d tools", listed.ProtocolVersion, len(listed.Tools))
}

// lint checks that psi fails if it finds errors.
func (b *bench) lint(t *testing.T, s published, server []string) {
	t.Helper()
	out, err := b.try(t, b.psi, slices.Concat([]string{"lint", "-json"}, server)...)
	var found []struct{ Severity string }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	count := map[string]int{}
	for _, f := range found {
		count[f.Severity]++
	}
	if count["error"] != s.errors || len(found) != count["error"]+count["warning"]+count["note"] {
		t.Errorf("found %v, want %d errors: %s", count, s.errors, out)
	}
	exit, failed := errors.AsType[*exec.ExitError](err)
	if failed != (s.errors > 0) || failed && exit.ExitCode() != 1 {
		t.Errorf("psi lint ended with %v, having found %v", err, count)
	}
	t.Logf("lint found %v", count)
}

// source returns the path of the generated client of a server.
func (b *bench) source(s published) string { return filepath.Join(b.dir, s.name+".go") }

// compile compiles all generated clients into a program that calls a server by name.
func (b *bench) compile(t *testing.T) string {
	t.Helper()
	var imports, uses strings.Builder
	replace := map[string]string{}
	at := func(file string) string {
		path, err := filepath.Abs(filepath.Join("generated", file))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, s := range b.clients {
		replace[at(s.name+"/client.go")] = b.source(s)
		fmt.Fprintf(&imports, "\t%q\n", generated+"/"+s.name)
		fmt.Fprintf(&uses, "\tcase %q:\n\t\tc := %s.New(conn)\n\t\treturn both(%s)\n", s.name, s.name, b.words([]string{s.use})[0])
	}
	replace[at("main.go")] = filepath.Join(b.dir, "main.go")
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{"main.go": fmt.Sprintf(clientProgram, imports.String(), uses.String()), "overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(b.dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b.build(t, ".", "clients", generated, "-overlay", filepath.Join(b.dir, "overlay.json"))
}

// clientProgram is the format of a program that imports and uses the generated clients.
const clientProgram = `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
%s)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = os.Environ()
	conn, err := mcp.NewClient("generated", "v1", nil).Connect(ctx, mcpstdio.NewCommand(cmd, nil))
	if err != nil {
		return err
	}
	defer conn.Close()
	v, err := use(ctx, conn, name)
	if err != nil {
		return err
	}
	fmt.Printf("%%+v\n", v)
	return nil
}

// both returns results and prompts as JSON, because they have pointers.
func both(v any, err error) (any, error) {
	switch v.(type) {
	case *mcp.CallToolResult, *mcp.GetPromptResult:
		data, _ := json.Marshal(v)
		return string(data), err
	}
	return v, err
}

func use(ctx context.Context, conn *mcp.Conn, name string) (any, error) {
	switch name {
%s	}
	return nil, fmt.Errorf("no server is called %%s", name)
}
`

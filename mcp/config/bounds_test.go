// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/config"
)

// A configuration file may have up to 64 MiB, and an environment file up to 1 MiB.
func TestSizes(t *testing.T) {
	const server = `{"mcpServers": {"a": {"command": "x"}}}`
	for size, fits := range map[int]bool{64 << 20: true, 64<<20 + 1: false} {
		text := append([]byte(server), bytes.Repeat([]byte(" "), size-len(server))...)
		if _, err := config.Parse("mcp.json", text); (err == nil) != fits || !fits && err.Error() != "config: mcp.json: the file has more than 67108864 bytes" {
			t.Errorf("a file of %d bytes: %v", size, err)
		}
	}
	t.Chdir(t.TempDir())
	s := parse(t, `{"mcpServers": {"a": {"command": "x", "envFile": "e"}}}`).Servers[0]
	for size, fits := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		if err := os.WriteFile("e", bytes.Repeat([]byte("\n"), size), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Transport(t.Context(), nil); (err == nil) != fits || !fits && !strings.HasSuffix(err.Error(), "has more than 1048576 bytes") {
			t.Errorf("an environment file of %d bytes: %v", size, err)
		}
	}
	if err := os.WriteFile("f", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate("f", 64<<20+1); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load("f"); err == nil || !strings.HasSuffix(err.Error(), "more than 67108864 bytes") {
		t.Errorf("a file of zeros: %v", err)
	}
	if err := os.Mkdir("d", 0o700); err != nil {
		t.Fatal(err)
	}
	s.EnvFile = "d"
	if _, err := s.Transport(t.Context(), nil); err == nil {
		t.Error("an environment file that is a directory is no error")
	}
	if _, err := config.Load("d"); err == nil || !strings.HasPrefix(err.Error(), "config: ") {
		t.Errorf("a directory: %v", err)
	}
}

// In an environment file, a matching pair of quotes around a value is removed, and so is a
// comment after it.
func TestEnvFileQuotes(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("e", []byte("\ufeffA=\"\"\nB='x y'\nC=\"\nD='x\"\nE= z \nexport F=a=b\nG=g # a comment\nH='h # h' # a comment\nI=i#i\nJ=# a comment\nk.k-k=k\nL=l # it's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &config.Server{Command: self, EnvFile: "e", Env: map[string]string{isServer: "1"}}
	got, err := mcp.Call[process](t.Context(), connect(t, s, nil), "process", nil)
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Join(got.Env, "\n") + "\n"
	for _, want := range []string{"A=", "B=x y", `C="`, `D='x"`, "E=z", "F=a=b", "G=g", "H=h # h", "I=i", "J=", "k.k-k=k", "L=l"} {
		if !strings.Contains(env, "\n"+want+"\n") {
			t.Errorf("the environment lacks %s: %q", want, env)
		}
	}
}

// An environment file is read as VS Code does: escapes in double quotes are replaced, there are
// three kinds of quotes, a colon separates as well, and other lines are skipped with a warning.
func TestFindingR9EnvFile(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	text := "KEY=\"-----BEGIN\\nx\\r\\n-----END\"\nTICKS=`a # \"b\"`\nCOLON: v\nnonsense\rexport SINGLE='a\\nb'\r\nURL=http://x:1/\nDIR=\"C:\\dir\\\"\nE=\"a\\\" # b\"\nmore nonsense\n"
	utf16 := []byte("\xff\xfe")
	for _, c := range []byte(text) { // as PowerShell writes it
		utf16 = append(utf16, c, 0)
	}
	for name, data := range map[string][]byte{"UTF-8": []byte(text), "UTF-16": utf16} {
		if err := os.WriteFile("e", data, 0o600); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		s := &config.Server{Name: "a", Command: self, EnvFile: "e", Env: map[string]string{isServer: "1"}}
		opts := &config.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		got, err := mcp.Call[process](t.Context(), connect(t, s, opts), "process", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"KEY=-----BEGIN\nx\r\n-----END", "TICKS=a # \"b\"", "COLON=v", `SINGLE=a\nb`, "URL=http://x:1/", `DIR=C:\dir\`, `E=a\" # b`} {
			if !slices.Contains(got.Env, want) {
				t.Errorf("%s: the environment lacks %q: %q", name, want, got.Env)
			}
		}
		if !strings.Contains(log.String(), "lines left out because they are not NAME=value: 2, the first is line 4") || strings.Contains(log.String(), "nonsense") {
			t.Errorf("%s: warned %s", name, &log)
		}
	}
}

// Servers are sorted by name, wherever they are in the file.
func TestOrder(t *testing.T) {
	file := parse(t, `{"servers": {"b": {"command": "x"}, "a": {}}, "mcpServers": {"d": {}, "c": {}, "0": {}}} // the end`)
	names := ""
	for _, s := range file.Servers {
		names += s.Name
	}
	if names != "0abcd" {
		t.Errorf("the servers are %s", names)
	}
}

// Within a string, text that looks like a comment or like a trailing comma is kept.
func TestNoComments(t *testing.T) {
	for text, want := range map[string]string{
		`"https://a // b"`: "https://a // b", `"a /* b */, ]"`: "a /* b */, ]", `"a \"// b"`: `a "// b`, `"a\\" // c`: `a\`, `"a\\\" /* b"`: `a\" /* b`,
	} {
		file := parse(t, `{"servers": {"a": {"command": "x", "args": [`+text+"\n,] /* c */}}} // d")
		if got := file.Servers[0].Args; len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// Line numbers in errors are those of the file, including comments.
func TestLines(t *testing.T) {
	for _, text := range []string{"{// one\n/* two\n*/ \"servers\": {\n]}", "{\n// two\n// three\n]}"} {
		if _, err := config.Parse("f", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "config: f: line 4, column 1: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Servers that were not parsed from a file can be used, too.
func TestHandMade(t *testing.T) {
	for want, s := range map[string]*config.Server{
		"config: the server is nil":                                               nil,
		"config: want a command or a url":                                         {},
		`config: server "a": url: ${NONE_SUCH}: the environment does not have it`: {Name: "a", URL: "https://${NONE_SUCH}"},
		"config: url: ${input:x}: there are no inputs without a file":             {URL: "https://${input:x}"},
	} {
		if _, err := s.Transport(t.Context(), nil); fmt.Sprint(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/config"
)

// A file that a user of Zed may have: with comments, other settings, a server and its secret.
const zedSettings = `// Zed settings
{
    "theme": "One Dark", // dark
    "context_servers": {
        /* finds` + "\x1b[2J\u202e" + ` things */
        "search": {"command": "npx", "args": ["--token", "secret-1"], "env": {"KEY": "secret-2"}},
    },
    "vim_mode": true,
}
`

// hostPath returns the path of the file of a host, in a directory that exists.
func hostPath(t *testing.T, host string) string {
	t.Helper()
	for _, l := range config.Locations() {
		if l.Host == host {
			if err := os.MkdirAll(filepath.Dir(l.Path), 0o700); err != nil {
				t.Fatal(err)
			}
			return l.Path
		}
	}
	t.Fatalf("there is no host %q", host)
	return ""
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// writeProgram writes a program that does nothing into the working directory.
func writeProgram(t *testing.T, name string) (path string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// backups returns the copies beside a file.
func backups(t *testing.T, path string) []string {
	t.Helper()
	found, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A server is added after the user has seen the difference, which has no secrets. The copy
// is the file as it was, and removing the server gives that file again.
func TestInstall(t *testing.T) {
	isolate(t)
	t.Chdir(t.TempDir())
	program := writeProgram(t, "counter")
	path := hostPath(t, "Zed")
	writeFile(t, path, zedSettings)
	install := []string{"install", "counter", "-env", "KEY=secret-3", "--", "." + string(filepath.Separator) + filepath.Base(program), "-v"}

	for _, answer := range []string{"", "n\n", "!\n"} {
		if got := psi(t, answer, install...); got.code != exitUsage || !strings.Contains(got.errOut, "nothing was written") {
			t.Errorf("after %q: exit code %d, wrote %q", answer, got.code, got.errOut)
		}
	}
	if got := readFile(t, path); got != zedSettings || len(backups(t, path)) != 0 {
		t.Errorf("without consent, the file became %s", got)
	}
	got := psi(t, "y\n", install...)
	for _, want := range []string{"+        \"counter\": {\n", `+                "KEY": "(redacted)"`, `"args": ["--token", "(redacted)"]`, `/* finds\x1b[2J\u202e things */`, "Write this?", "Zed: wrote " + path} {
		if !strings.Contains(got.errOut, want) {
			t.Errorf("it wrote %s, want %s", got.errOut, want)
		}
	}
	if got.code != exitOK || strings.Contains(got.errOut, "secret-") || strings.ContainsAny(got.errOut, "\x1b\u202e") {
		t.Errorf("exit code %d, wrote %s", got.code, got.errOut)
	}
	file, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := file.Server("counter"); err != nil || s.Command != program || s.Args[0] != "-v" || s.Env["KEY"] != "secret-3" {
		t.Errorf("the server is %+v, %v", s, err)
	}
	if all := backups(t, path); len(all) != 1 || readFile(t, all[0]) != zedSettings {
		t.Errorf("the copies are %q", all)
	}
	if got := psi(t, "", install...); got.code != exitOK || !strings.Contains(got.errOut, "nothing to change") {
		t.Errorf("again: exit code %d, wrote %q", got.code, got.errOut)
	}
	if got := psi(t, "", "uninstall", "counter", "-yes"); got.code != exitOK || strings.Contains(got.errOut, "secret-") {
		t.Errorf("uninstall: exit code %d, wrote %q", got.code, got.errOut)
	}
	if got := readFile(t, path); got != zedSettings {
		t.Errorf("after uninstall, the file is %s", got)
	}
}

// A file that is not valid is left alone, and the error says where the mistake is.
func TestInstallIntoMalformedFiles(t *testing.T) {
	isolate(t)
	t.Chdir(t.TempDir())
	program := writeProgram(t, "counter")
	path := hostPath(t, "Cursor")
	for text, want := range map[string]string{
		"{\n  \"mcpServers\": {\n    \"a\": {} \"b\": {}\n  }\n}":       "line 3, column 13: ",
		"{\n  \"mcpServers\": {'a': {}}\n}":                             "line 2, column 18: ",
		"{\n  \"mcpServers\": {\n":                                      "line 3, column 1: ",
		`{"mcpServers": [{"name": "a"}]}`:                               "mcpServers: want an object",
		"{\"mcpServers\": {}, \"mcpServers\": {}}":                      "more than once",
		"\xff\xfe{\x00}\x00":                                            "UTF-16",
		`{"mcpServers": {"counter": {}}, "mcpServers\u0000\u001b[2": 1`: "line 1, column ",
	} {
		writeFile(t, path, text)
		got := psi(t, "", "install", "counter", "-yes", "--", program)
		if got.code != exitUsage || !strings.Contains(got.errOut, want) || strings.Contains(got.errOut, "\x1b") {
			t.Errorf("%q: exit code %d, wrote %q, want %s", text, got.code, got.errOut, want)
		}
		if readFile(t, path) != text || len(backups(t, path)) != 0 {
			t.Errorf("%q: the file is %q, and the copies are %q", text, readFile(t, path), backups(t, path))
		}
	}
}

// A file that the user does not want to be written stays, and one without a server so far need
// not be an object.
func TestInstallIntoOddFiles(t *testing.T) {
	isolate(t)
	t.Chdir(t.TempDir())
	program := writeProgram(t, "counter")
	path := hostPath(t, "Cursor")
	for _, text := range []string{"", "\n\n", " \r\n\t\r\n"} {
		writeFile(t, path, text)
		if got := psi(t, "", "install", "counter", "-yes", "--", program); got.code != exitOK || !strings.Contains(got.errOut, `+    "counter"`) {
			t.Errorf("%q: exit code %d, wrote %q", text, got.code, got.errOut)
		}
	}
	before := readFile(t, path)
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if got := psi(t, "", "install", "other", "-yes", "--", program); got.code != exitUsage || !strings.Contains(got.errOut, "is read-only") || readFile(t, path) != before {
		t.Errorf("exit code %d, wrote %q", got.code, got.errOut)
	}
}

// A link stays a link, and the file that it leads to keeps its permissions.
func TestInstallThroughLinks(t *testing.T) {
	home := isolate(t)
	t.Chdir(t.TempDir())
	program := writeProgram(t, "counter")
	path, target := hostPath(t, "Cursor"), filepath.Join(home, "dotfiles.json")
	if err := os.Symlink(target, path); err != nil {
		t.Skip("there are no symbolic links:", err)
	}
	if got := psi(t, "", "install", "counter", "-yes", "--", program); got.code != exitUsage || !strings.Contains(got.errOut, "a link to a file that does not exist") {
		t.Errorf("exit code %d, wrote %q", got.code, got.errOut)
	}
	if err := os.WriteFile(target, []byte("{}"), 0o640); err != nil {
		t.Fatal(err)
	}
	if got := psi(t, "", "install", "counter", "-yes", "--", program); got.code != exitOK {
		t.Errorf("exit code %d, wrote %q", got.code, got.errOut)
	}
	link, err := os.Readlink(path)
	if err != nil || link != target || !strings.Contains(readFile(t, target), "counter") {
		t.Errorf("the link is %q, %v, and the file %s", link, err, readFile(t, target))
	}
	for _, name := range append(backups(t, target), target) {
		if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// What the host writes while the user reads the difference is not lost.
func TestInstallIntoFileThatChanges(t *testing.T) {
	isolate(t)
	path := hostPath(t, "Cursor")
	for _, before := range []string{"", "{}"} {
		if before != "" {
			writeFile(t, path, before)
		}
		f, err := readHostFile(config.Location{Host: "Cursor", Path: path})
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, `{"theme": "dark"}`)
		if _, err := f.write([]byte(`{"mcpServers": {}}`)); err == nil || !strings.Contains(err.Error(), "changed by another program") {
			t.Errorf("%q: %v", before, err)
		}
		if got := readFile(t, path); got != `{"theme": "dark"}` {
			t.Errorf("%q: the file is %s", before, got)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Without -host, the host is the only one that there is.
func TestInstallChoosesHost(t *testing.T) {
	isolate(t)
	t.Chdir(t.TempDir())
	program := writeProgram(t, "counter")
	refused := func(want string, words ...string) {
		t.Helper()
		if got := psi(t, "", words...); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%q: exit code %d, wrote %q, want %s", words, got.code, got.errOut, want)
		}
	}
	refused("no host was found; choose one with -host: claude-desktop, claude-code, vs-code", "install", "counter", "--", program)
	refused(`there is no host "cursr"; did you mean "cursor"?`, "install", "counter", "-host", "cursr", "--", program)
	hostPath(t, "Cursor")
	if got := psi(t, "", "install", "counter", "-yes", "--", program); got.code != exitOK || !strings.Contains(got.errOut, "Cursor: wrote") {
		t.Errorf("exit code %d, wrote %q", got.code, got.errOut)
	}
	desktop := hostPath(t, "Claude Desktop")
	refused("which host? choose with -host: claude-desktop, cursor", "install", "counter", "--", program)
	refused("psi install notes -host claude-desktop -- psi gateway -stdio https://example.com/mcp",
		"install", "notes", "-host", "Claude Desktop", "https://example.com/mcp")
	if got := psi(t, "", "install", "counter", "-yes", "-host", "claude-desktop", "-host", "vscode", "--", program); got.code != exitOK {
		t.Errorf("exit code %d, wrote %q", got.code, got.errOut)
	}
	if !strings.Contains(readFile(t, desktop), "mcpServers") || !strings.Contains(readFile(t, hostPath(t, "VS Code")), `"servers"`) {
		t.Errorf("the file of Claude Desktop is %s", readFile(t, desktop))
	}
	refused("several hosts have a server \"counter\"; choose with -host: claude-desktop, vs-code, cursor", "uninstall", "counter")
	refused(`no host has a server "countr"; did you mean "counter"?`, "uninstall", "countr")
	refused("there is no server \"counter\"", "uninstall", "counter", "-host", "windsurf")
}

// A server that the host would not see is installed, but the user learns why it would not.
func TestInstallExamines(t *testing.T) {
	isolate(t)
	t.Chdir(t.TempDir())
	program := writeProgram(t, "counter")
	hostPath(t, "Cursor")
	got := psi(t, "", "install", "counter", "-yes", "-env", "KEY=YOUR_API_KEY", "--", program, "--port 80")
	for _, want := range []string{`error: Cursor "counter": env.KEY still has the text of an example`, `warning: Cursor "counter": args[0] is one argument`, "restart the host"} {
		if got.code != exitOK || !strings.Contains(got.errOut, want) {
			t.Errorf("exit code %d, wrote %q, want %s", got.code, got.errOut, want)
		}
	}
}

// The files of projects have the dialect of their host.
func TestInstallIntoProjects(t *testing.T) {
	isolate(t)
	t.Chdir(t.TempDir())
	for path, want := range map[string]string{
		".mcp.json":           `"type": "http"`,
		".vscode/mcp.json":    `"servers"`,
		".cursor/mcp.json":    `"mcpServers"`,
		".zed/settings.json":  `"context_servers"`,
		"deeper/servers.json": `"mcpServers"`,
	} {
		got := psi(t, "", "install", "notes", "-yes", "-config", path, "https://example.com/mcp", "-header", "Authorization: Bearer ${TOKEN}")
		if got.code != exitOK || !strings.Contains(readFile(t, path), want) || !strings.Contains(readFile(t, path), "Bearer ${TOKEN}") {
			t.Errorf("%s: exit code %d, wrote %q; the file is %s", path, got.code, got.errOut, readFile(t, path))
		}
	}
}

// A URL may lack its scheme, as on the other command lines.
func TestInstallURLWithoutScheme(t *testing.T) {
	isolate(t)
	path := filepath.Join(t.TempDir(), ".mcp.json")
	got := psi(t, "", "install", "notes", "-yes", "-config", path, "127.0.0.1:8080/mcp")
	if got.code != exitOK || !strings.Contains(readFile(t, path), `"http://127.0.0.1:8080/mcp"`) {
		t.Errorf("exit code %d, wrote %q; the file is %s", got.code, got.errOut, readFile(t, path))
	}
	if !strings.Contains(got.errOut, "@@ -0,0 +1,8 @@\n") {
		t.Errorf("the difference to no file: %s", got.errOut)
	}
}

// Mistakes in the command line are found before a file is read.
func TestInstallMistakes(t *testing.T) {
	isolate(t)
	for args, want := range map[string]string{
		"install":                                          "want the name of the server",
		"install a b c":                                    "want the name of the server",
		"install a":                                        "which server? give its URL, or -- and its command",
		"install a --":                                     "no command follows the --",
		"install a.b -- go":                                `"a.b" is not a name that all hosts accept`,
		"install a https://x -- go":                        "want either a URL or a command",
		"install a ./server":                               `"./server" is not an https:// or http:// URL; a command comes after --`,
		"install a ftp://x":                                `"ftp://x" is not an https:// or http:// URL`,
		"install a https://x -header A:b\x00":              `is not of the form "Name: value"`,
		"install a https://x -env A=b":                     "-env is for commands",
		"install a -header A:b -- go":                      "-header is for a URL",
		"install a -- /no/such/program":                    "/no/such/program",
		"install a -- no-such-program":                     "hosts need a program that exists",
		"install a -env NONE_SUCH -- go":                   "-env NONE_SUCH: the environment does not have it",
		"install a -config x -host cursor -host zed -- go": "-config wants one -host",
		"uninstall":                                        "want the name of the server",
		"uninstall a -- b":                                 "uninstall takes no command after --",
	} {
		if got := psi(t, "", strings.Fields(args)...); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: exit code %d, wrote %q, want %s", args, got.code, got.errOut, want)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix && !aix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/lint"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// writeScript writes an executable file.
func writeScript(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// diagnose returns the lines that doctor writes about a server in the file of a host.
func diagnose(t *testing.T, host, server string, flags ...string) (lines string, code int) {
	t.Helper()
	path := hostPath(t, host)
	list := "mcpServers"
	if strings.HasPrefix(host, "VS Code") {
		list = "servers"
	}
	writeFile(t, path, fmt.Sprintf(`{%q: {"s": %s}}`, list, server))
	got := psi(t, "", append([]string{"doctor", "-host", host}, flags...)...)
	return got.out, got.code
}

// What can be seen without starting the server is said with its remedy.
func TestDoctorWithoutStarting(t *testing.T) {
	home := isolate(t)
	nvm := home + "/.nvm/versions/node/v22.1.0/bin"
	writeScript(t, nvm+"/nodelike", "#!/bin/sh\n")
	writeScript(t, home+"/server", "#!/usr/bin/env nodelike\n")
	writeScript(t, home+"/bin/shelled", "#!/bin/sh\n")
	writeScript(t, home+"/script", "#!/usr/bin/env shelled\n")
	writeScript(t, home+"/bin/direct", "#!/bin/sh none-such\n")
	writeScript(t, home+"/bin/binary", "env none-such\n")
	writeScript(t, home+"/bin/npx.CMD", "@echo off\n")
	writeFile(t, home+"/plain", "#!/bin/sh\n")
	t.Setenv("PATH", home+"/bin:/usr/bin:/bin")
	for _, test := range []struct{ host, server, want string }{
		{"Claude Desktop", `{"command": "nodelike"}`,
			`error: Claude Desktop "s": the program "nodelike" is not in the PATH, but in ` + nvm + `; write "command": "` + nvm + `/nodelike" [path]`},
		{"Claude Desktop", `{"command": "shelled"}`,
			`warning: Claude Desktop "s": "shelled" is in ` + home + `/bin, which is in the PATH of your shell but not in that of the host; write "command": "` + home + `/bin/shelled"`},
		{"Claude Code", `{"command": "shelled"}`, ""},
		{"Claude Desktop", `{"command": "` + home + `/script"}`,
			`/script is a script for "shelled", which is in the PATH of your shell but not in that of the host; add "env": {"PATH": "` + home + `/bin:/usr/local/bin:`},
		{"Claude Code", `{"command": "` + home + `/script"}`, ""},
		{"Claude Desktop", `{"command": "shelled", "env": {"PATH": "` + home + `/bin"}}`, ""},
		{"Claude Desktop", `{"command": "none-such-program"}`, `error: Claude Desktop "s": there is no program "none-such-program"; install it`},
		{"Cursor", `{"command": "` + home + `/server"}`,
			`/server is a script for "nodelike", which is not in the PATH; add "env": {"PATH": "` + nvm + `:/usr/local/bin:`},
		{"Cursor", `{"command": "` + home + `/server", "env": {"PATH": "` + nvm + `"}}`, ""},
		{"Cursor", `{"command": "direct"}`, ""},
		{"Cursor", `{"command": "binary"}`, ""},
		{"Cursor", `{"command": "` + home + `/none"}`, "error: Cursor \"s\": there is no file " + home + "/none; build or install it"},
		{"Cursor", `{"command": "` + home + `/plain"}`, "/plain is not executable; chmod +x"},
		{"Cursor", `{"command": "` + home + `/bin"}`, "/bin is a directory; "},
		{"Cursor", `{"command": "npx.CMD"}`,
			`warning: Cursor "s": ` + home + `/bin/npx.CMD is a batch file, which some hosts cannot start by themselves; write "command": "cmd" and "args": ["/c", "npx", …] [batch]`},
		{"Cursor", `{"command": "` + home + `/bin/npx.CMD"}`, "[batch]"},
		{"Cursor", `{"command": "bin/shelled"}`, "the command is relative to a directory that the host chooses; write the whole path [relative]"},
		{"Cursor", `{"command": "bin/shelled", "cwd": "` + home + `"}`, ""},
		{"Cursor", `{"command": "/bin/sh", "cwd": "/none/such"}`, "the directory in which it is to run does not exist"},
		{"Cursor", `{"command": "node server.js"}`, `the command contains its arguments, so the host looks for a program with spaces in its name; write "command": "node" and the others in "args" [quoting]`},
		{"Cursor", `{"command": "~/bin/x"}`, `the command begins with "~/", which only shells replace`},
		{"Cursor", `{"command": "/bin/cat", "args": ["$HOME/x"]}`, `args[0] begins with "$H", which only shells replace`},
		{"Cursor", `{"command": "/bin/cat", "args": ["x", "&&", "y"]}`, `args[1] is "&&", which only shells understand`},
		{"Cursor", `{"command": "/bin/sh", "args": ["-c", "x && $HOME/y"]}`, ""},
		{"Cursor", `{"command": "/bin/cat", "args": ["--port 80"]}`, "warning: Cursor \"s\": args[0] is one argument, --port together with its value"},
		{"Cursor", `{"command": "/bin/cat", "args": ["src/server.py"]}`, "warning: Cursor \"s\": args[0] is a path relative"},
		{"Cursor", `{"command": "/bin/cat", "args": ["\"x\""]}`, "warning: Cursor \"s\": args[0] begins or ends with quotes"},
		{"Cursor", `{"command": "/bin/cat", "env": {"KEY": "YOUR_API_KEY"}}`, "env.KEY still has the text of an example"},
		{"Cursor", `{"command": "/bin/cat", "env": {"KEY": ""}}`, "note: Cursor \"s\": env.KEY is empty"},
		{"Cursor", `{"command": "/bin/cat", "env": {"KEY": "${HOME}"}}`, "env.KEY has ${HOME}, which the host passes on as it is; write ${env:HOME} [variable]"},
		{"Cursor", `{"command": "/bin/cat", "env": {"KEY": "${env:HOME}", "X": "${workspaceFolder}"}}`, ""},
		{"Claude Code", `{"command": "/bin/cat", "env": {"KEY": "${HOME:-x}"}}`, ""},
		{"Claude Desktop", `{"command": "/bin/cat", "env": {"KEY": "${NONE_SUCH}"}}`, "env.KEY has ${NONE_SUCH}, which the host passes on as it is; write the value"},
		{"Cursor", `{"command": "/bin/cat", "env": {"KEY": "${env:NONE_SUCH}"}}`, "the environment does not have it"},
		{"Cursor", `{"command": "/bin/cat", "apiKey": "secret-1"}`, `warning: Cursor "s": ` + home + `/.cursor/mcp.json: server "s": "apiKey": unknown, and left out`},
		{"Cursor", `{"command": "/bin/cat", "args": "x"}`, "args: must not be a JSON string"},
		{"Cursor", `{"command": "/bin/cat", "disabled": true}`, "note: Cursor \"s\": it is disabled in the file"},
		{"Claude Desktop", `{"url": "https://example.com/mcp"}`, "the host can only start commands; psi install s -host claude-desktop -- psi gateway -stdio URL"},
		{"Claude Code", `{"url": "https://example.com/mcp"}`, `takes a server without a type for a command; add "type": "http" [type]`},
		{"VS Code", `{"type": "stdio", "command": "/bin/cat", "env": {"K": "${input:key}"}}`, `the file has no input "key"`},
		{"VS Code Insiders", `{"command": "/bin/cat", "env": {"KEY": "${HOME}"}}`, "write ${env:HOME} [variable]"},
		{"Cursor", `{"command": "/bin/\u001b[2J\u202ecat"}`, `there is no file /bin/\x1b[2J\u202ecat`},
	} {
		got, code := diagnose(t, test.host, test.server, "-static")
		if test.want == "" && !strings.HasPrefix(got, "0 errors, 0 warnings, 0 notes\n") || !strings.Contains(got, test.want) {
			t.Errorf("%s %s: wrote\n%swant\n%s", test.host, test.server, got, test.want)
		}
		if hasErrors := strings.HasPrefix(got, "error") || strings.Contains(got, "\nerror"); hasErrors != (code == exitFailed) || strings.Contains(got, "secret") || strings.Contains(got, "\x1b") {
			t.Errorf("%s: exit code %d, wrote\n%s", test.server, code, got)
		}
	}
}

// What is wrong with a file concerns all of its servers.
func TestDoctorOfFiles(t *testing.T) {
	home := isolate(t)
	const nothing = "No host on this machine has a server; psi install adds one.\n"
	if got := psi(t, "", "doctor", "-static"); got.code != exitOK || got.errOut != nothing {
		t.Errorf("without hosts: exit code %d, wrote %q", got.code, got.errOut)
	}
	writeFile(t, hostPath(t, "Cursor"), "{")
	if got := psi(t, "", "doctor", "-static"); got.code != exitFailed || strings.Contains(got.errOut, nothing) {
		t.Errorf("with a file that is not valid: exit code %d, wrote %q", got.code, got.errOut)
	}
	for _, test := range []struct{ host, text, want string }{
		{"Cursor", "{\n\"mcpServers\": {\n  \"a\": {} \"b\": {}\n}}", `error: Cursor: ` + home + `/.cursor/mcp.json: line 3, column 11: `},
		{"Cursor", `{"servers": {"s": {"command": "/bin/cat"}}}`, `error: Cursor "s": it is listed in "servers", where the host does not look; move it into "mcpServers" [place]`},
		{"Cursor", "{\"mcpServers\": {\n// mine\n}}", "0 errors, 0 warnings, 0 notes\n"},
		{"Claude Desktop", "{\"mcpServers\": {\n  // mine\n}}", "claude_desktop_config.json: line 2, column 3: "},
		{"Claude Code", "{\"mcpServers\": {\n  // mine\n}}", ".claude.json: line 2, column 3: "},
		{"VS Code", `{"inputs": [{"id": "key", "type": "promptString"}], "servers": {"s": {"type": "stdio", "command": "/bin/cat", "args": ["${input:key}"]}}}`,
			`note: VS Code "s": the host asks for a value of it, so it was not started`},
		{"Cursor", `{"theme": "dark"}`, "there are no servers"},
	} {
		writeFile(t, hostPath(t, test.host), test.text)
		if got := psi(t, "", "doctor", "-static", "-host", test.host); !strings.Contains(got.out, test.want) {
			t.Errorf("%s: wrote\n%s%swant\n%s", test.text, got.out, got.errOut, test.want)
		}
	}
	if got := psi(t, "", "doctor", "-host", "zed"); got.code != exitFailed || !strings.Contains(got.out, "no such file") {
		t.Errorf("a missing file: exit code %d, wrote\n%s", got.code, got.out)
	}
	writeFile(t, hostPath(t, "Windsurf"), `{"mcpServers": {"notes": {"command": "/bin/cat"}}}`)
	if got := psi(t, "", "doctor", "ntes"); got.code != exitUsage || !strings.Contains(got.errOut, `no host has a server "ntes"; did you mean "notes"?`) {
		t.Errorf("an unknown name: exit code %d, wrote %q", got.code, got.errOut)
	}
	if got := psi(t, "", "doctor", "a", "b"); got.code != exitUsage {
		t.Errorf("two names: exit code %d", got.code)
	}
}

// What the host has written into its log about the server is shown, without secrets.
func TestDoctorReadsLogs(t *testing.T) {
	isolate(t)
	if runtime.GOOS == "darwin" {
		t.Skip("the log is elsewhere")
	}
	log := filepath.Join(filepath.Dir(hostPath(t, "Claude Desktop")), "logs", "mcp-server-s.log")
	text := strings.Repeat("2026-11-27 [s] [info] older\n", 5000) + "2026-11-27 [s] [error] spawn npx ENOENT \x1b[2J token=secret-1\n2026-11-27 [s] [info] Initializing server...\n"
	writeScript(t, log, text)
	got, code := diagnose(t, "Claude Desktop", `{"command": "/bin/cat"}`, "-static")
	want := `note: Claude Desktop "s": the host's log says at last: 2026-11-27 [s] [error] spawn npx ENOENT \x1b[2J token=(redacted); see ` + log
	if !strings.HasPrefix(got, want) || code != exitOK {
		t.Errorf("exit code %d, wrote\n%swant\n%s", code, got, want)
	}
	writeScript(t, log, "2026-11-27 [s] [info] fine\n")
	if got, _ := diagnose(t, "Claude Desktop", `{"command": "/bin/cat"}`, "-static"); strings.Contains(got, "log") {
		t.Errorf("without complaints, wrote\n%s", got)
	}
}

// A server is started as the host starts it, and what it does instead of serving is said.
func TestDoctorStartsCommands(t *testing.T) {
	home := isolate(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	writeScript(t, home+"/quits", "#!/bin/sh\necho oops >&2; echo API_TOKEN=secret-1 is invalid >&2; exit 3\n")
	// What a server writes to its standard output is only seen for certain if it reads, too.
	writeScript(t, home+"/chats", "#!/bin/sh\necho starting; read line; echo oops >&2; exit 3\n")
	writeScript(t, home+"/noisy", "#!/bin/sh\necho Listening; exec "+self+"\n")
	serving := map[string]string{isServer: "yes"}
	for _, test := range []struct {
		command string
		flags   []string
		want    []string
	}{
		{home + "/quits", nil, []string{
			`error: Cursor "s": it ends at once: exit status 3; it wrote: oops / API_TOKEN=(redacted) is invalid; run the command in a terminal`,
		}},
		{home + "/chats", nil, []string{
			`error: Cursor "s": it ends at once: exit status 3; it wrote: oops; run`,
			`warning: Cursor "s": it writes other text than messages to its standard output: "starting"; write logs to standard error`,
		}},
		{"/bin/cat", []string{"-timeout", "200ms"}, []string{`error: Cursor "s": it runs, but does not answer within 200ms;`}},
		{home + "/noisy", nil, []string{"ok: Cursor \"s\": 2 tools, 1 prompt, 2 resources, revision " + mcp.LatestVersion + "\n", `other text than messages to its standard output: "Listening"`}},
		{self, nil, []string{"ok: Cursor \"s\": 2 tools", "\n0 errors, 0 warnings, 0 notes\n"}},
	} {
		server := strictjson.MustMarshal(map[string]any{"command": test.command, "env": serving})
		got, code := diagnose(t, "Cursor", string(server), test.flags...)
		for _, want := range test.want {
			if !strings.Contains(got, want) || strings.Contains(got, "secret") {
				t.Errorf("%s: wrote\n%swant\n%s", test.command, got, want)
			}
		}
		if (code == exitFailed) != strings.Contains(got, "error: ") {
			t.Errorf("%s: exit code %d", test.command, code)
		}
	}
	got, _ := diagnose(t, "Cursor", fmt.Sprintf(`{"command": %q}`, home+"/chats"), "-json")
	var found []lint.Finding
	if err := json.Unmarshal([]byte(got), &found); err != nil || len(found) != 2 || found[0].Rule != "exit" || found[0].Kind != "Cursor" || found[0].Name != "s" {
		t.Errorf("as JSON: %s, %v", got, err)
	}
}

// The answer of a server at a URL is explained.
func TestDoctorConnectsToURLs(t *testing.T) {
	isolate(t)
	routes := http.NewServeMux()
	routes.Handle("/mcp", mcphttp.NewHandler(newServer(), nil))
	routes.Handle("/empty", mcphttp.NewHandler(mcp.NewMux("empty", "v1", nil), nil))
	routes.HandleFunc("/login", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	routes.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	})
	routes.HandleFunc("/modern", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") != mcp.LatestVersion {
			http.Error(w, "too old", http.StatusBadRequest)
			return
		}
		mcphttp.NewHandler(newServer(), nil).ServeHTTP(w, r)
	})
	server := httptest.NewServer(routes)
	defer server.Close()
	for path, want := range map[string]string{
		"/mcp":    `ok: Cursor "s": 2 tools, 1 prompt, 2 resources, revision `,
		"/empty":  `warning: Cursor "s": it offers no tools, prompts or resources`,
		"/login":  `note: Cursor "s": it requires a login; log in from the host`,
		"/none":   `error: Cursor "s": the url answers 404; check the path`,
		"/broken": "the server answered 500 Internal Server Error",
		"/modern": `warning: Cursor "s": it speaks ` + mcp.LatestVersion + ` only`,
	} {
		if got, _ := diagnose(t, "Cursor", fmt.Sprintf(`{"url": %q}`, server.URL+path)); !strings.Contains(got, want) {
			t.Errorf("%s: wrote\n%swant\n%s", path, got, want)
		}
	}
	if got, _ := diagnose(t, "Cursor", fmt.Sprintf(`{"url": %q, "headers": {"Authorization": "Bearer secret-1"}}`, server.URL+"/login")); !strings.Contains(got, "does not accept the credentials in the headers") {
		t.Errorf("with a token: wrote\n%s", got)
	}
	server.Close()
	if got, _ := diagnose(t, "Cursor", fmt.Sprintf(`{"url": %q}`, server.URL+"/mcp")); !strings.Contains(got, "connection refused") {
		t.Errorf("without a server: wrote\n%s", got)
	}
}

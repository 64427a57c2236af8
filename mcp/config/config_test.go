// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/config"
)

// parse parses a file named mcp.json.
func parse(t *testing.T, text string) *config.File {
	t.Helper()
	file, err := config.Parse("mcp.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// vars returns a function that looks up variables in a fixed environment.
func vars(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, pair := range pairs {
			if n, value, _ := strings.Cut(pair, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}

// The files of different hosts, each in its dialect, are parsed to the same server.
func TestDialects(t *testing.T) {
	for host, text := range map[string]string{
		"Claude Desktop": `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "server"], "env": {"KEY": "1"}}}}`,
		"Claude Code":    `{"projects": {"/x": {}}, "mcpServers": {"a": {"type": "stdio", "command": "npx", "args": ["-y", "server"], "env": {"KEY": "1"}}}}`,
		"VS Code": `{
			// the user's servers
			"servers": {
				"a": {"type": "stdio", "command": "npx", "args": ["-y", "server",], /* a number */ "env": {"KEY": 1}, "dev": {"watch": "*"}},
			},
			"inputs": [],
		}`,
		"Cursor": "\ufeff" + `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "server"], "env": {"KEY": "1"}, "disabledTools": []}}}`,
		"Gemini": `{"theme": "dark", "mcpServers": {"a": {"command": "npx", "args": ["-y", "server"], "env": {"KEY": "1"}, "trust": true, "timeout": 5}}}`,
	} {
		t.Run(host, func(t *testing.T) {
			file := parse(t, text)
			got, err := file.Server("a")
			if err != nil || len(file.Servers) != 1 {
				t.Fatalf("%d servers, %v", len(file.Servers), err)
			}
			if got.Type != "stdio" || got.Command != "npx" || !reflect.DeepEqual(got.Args, []string{"-y", "server"}) || got.Env["KEY"] != "1" {
				t.Errorf("got %+v", got)
			}
			if _, err := got.Transport(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestURLs(t *testing.T) {
	for server, want := range map[string]string{
		`{"url": "https://example.com/mcp"}`:                            "http https://example.com/mcp",
		`{"type": "http", "url": "https://example.com/mcp"}`:            "http https://example.com/mcp",
		`{"type": "streamable-http", "url": "https://example.com/mcp"}`: "http https://example.com/mcp",
		`{"type": "sse", "url": "https://example.com/sse"}`:             "sse https://example.com/sse",
		`{"serverUrl": "https://example.com/mcp"}`:                      "http https://example.com/mcp",
		`{"httpUrl": "https://example.com/mcp"}`:                        "http https://example.com/mcp",
	} {
		got := parse(t, `{"mcpServers": {"a": `+server+`}}`).Servers[0]
		if got.Type+" "+got.URL != want {
			t.Errorf("%s: got %s %s, want %s", server, got.Type, got.URL, want)
		}
		if _, err := got.Transport(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", server, err)
		}
	}
}

func TestSelection(t *testing.T) {
	file := parse(t, `{"mcpServers": {
		"a": {"command": "x", "disabled": true, "excludeTools": ["one"], "disabledTools": ["two"]},
		"b": {"command": "x", "enabled": false, "includeTools": ["one"]},
		"c": {"command": "x", "enabled": true}
	}}`)
	a, b, c := file.Servers[0], file.Servers[1], file.Servers[2]
	if !a.Disabled || !b.Disabled || c.Disabled {
		t.Errorf("disabled are %v, %v and %v", a.Disabled, b.Disabled, c.Disabled)
	}
	if !reflect.DeepEqual(a.ExcludeTools, []string{"one", "two"}) || !reflect.DeepEqual(b.IncludeTools, []string{"one"}) || c.IncludeTools != nil {
		t.Errorf("tools are %v, %v and %v", a.ExcludeTools, b.IncludeTools, c.IncludeTools)
	}
	both := &config.Server{IncludeTools: []string{"one", "two"}, ExcludeTools: []string{"two"}}
	for server, uses := range map[*config.Server]string{a: "three", b: "one", c: "one two three", both: "one"} {
		for _, tool := range []string{"one", "two", "three"} {
			if got := server.UsesTool(tool); got != strings.Contains(uses, tool) {
				t.Errorf("%s: uses %s is %t, want those of %q", server.Name, tool, got, uses)
			}
		}
	}
}

// If a file cannot be parsed, the error says where.
func TestMalformedFiles(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "config: mcp.json: line 1, column ",
		`[]`:                               "config: mcp.json: must not be a JSON array",
		`{}`:                               `config: mcp.json: there are no servers: want them below "mcpServers" or "servers"`,
		"{\n\"mcpServers\": {\n]":          "config: mcp.json: line 3, column 1: ",
		`{"mcpServers": []}`:               "config: mcp.json: mcpServers: must not be a JSON array",
		`{"servers": []}`:                  "config: mcp.json: servers: must not be a JSON array",
		`{"mcpServers": {"command": "x"}}`: "config: mcp.json: mcpServers: want servers by name, not a server",
		"{/ \"mcpServers\": {}}":           "config: mcp.json: line 1, column ",
		"{/* \"mcpServers\": {}}":          "config: mcp.json: line 1, column ",
	} {
		if _, err := config.Parse("mcp.json", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", text, err, want)
		}
	}
	if _, err := config.Load(filepath.Join(t.TempDir(), "none.json")); err == nil || !strings.HasPrefix(err.Error(), "config: ") {
		t.Errorf("a missing file: %v", err)
	}
}

// Using an invalid server fails with an error that names the server and the member.
func TestMalformedServers(t *testing.T) {
	t.Chdir(t.TempDir())
	for server, want := range map[string]string{
		`[]`: `must not be a JSON array`,
		`{}`: `want a command or a url`,
		`{"command": "x", "url": "https://example.com"}`: `want either a command or a url, not both`,
		`{"command": 1}`:                                                             `command: must not be a JSON number`,
		`{"command": "x", "args": ["a", 1]}`:                                         `args: /1 must not be a JSON number`,
		`{"command": "x", "env": {"A": []}}`:                                         `env: "A": want a string`,
		`{"command": "x", "env": {"A=B": "1"}}`:                                      `env.A=B: not a variable of an environment`,
		`{"type": "ws", "url": "wss://example.com"}`:                                 `type: "ws" is not supported; want stdio, http or sse`,
		`{"type": "sse", "command": "x"}`:                                            `url: a server of the type "sse" must have one`,
		`{"type": "stdio", "url": "https://example.com"}`:                            `command: a server of the type "stdio" must have one`,
		`{"url": "example.com"}`:                                                     `url: want a URL that begins with https:// or http://`,
		`{"url": "https:///mcp"}`:                                                    `url: want a URL that begins with https:// or http://`,
		`{"url": "ftp://example.com"}`:                                               `url: want a URL that begins with https:// or http://`,
		`{"url": "https://example.com", "headers": {"A B": "1"}}`:                    `headers.A B: not a header of HTTP`,
		`{"url": "https://example.com", "headers": {"A": "${LINES}"}}`:               `headers.A: not a header of HTTP`,
		`{"url": "https://example.com", "headers": {"Authorization": "${MISSING}"}}`: `headers.Authorization: ${MISSING}: the environment does not have it`,
		`{"url": "https://${env:MISSING}/"}`:                                         `url: ${env:MISSING}: the environment does not have it`,
		`{"command": "x", "args": ["${$HOME}"]}`:                                     `args: ${$HOME}: there is no such variable`,
		`{"command": "x", "args": ["${command:pick}"]}`:                              `args: ${command:pick}: there is no such variable`,
		`{"command": "x", "env": {"A": "${input:key}"}}`:                             `env.A: ${input:key}: the file has no input "key"`,
		`{"command": "x", "env": {"A": "${input:token}"}}`:                           `env.A: ${input:token}: the user cannot be asked for it: Options.Input is nil`,
		`{"command": "x", "envFile": "${workspaceFolder}/none.env"}`:                 `none.env`,
	} {
		file := parse(t, `{"mcpServers": {"a": `+server+`}, "inputs": [{"id": "token", "type": "promptString"}]}`)
		_, err := file.Servers[0].Transport(t.Context(), &config.Options{LookupEnv: vars("LINES=a\r\nb")})
		if prefix := `config: mcp.json: server "a": `; err == nil || !strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s%s", server, err, prefix, want)
		}
	}
}

// Hosts store other settings in their files. Odd content written there by others does not
// make the servers unusable.
func TestOddFiles(t *testing.T) {
	for _, text := range []string{
		`{"mcpServers": {"a": {"command": "x"}}, "history": ["cut in the middle of an emoji: \ud83d"]}`,
		"{\"mcpServers\": {\"a\": {\"command\": \"x\"}}, \"history\": [\"\xff\"]}",
		`{"servers": {"a": {"command": "x"}}, "inputs": [{"id": "port", "type": "promptString", "default": 8080}]}`,
	} {
		if _, err := parse(t, text).Servers[0].Transport(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A server whose own text is invalid is rejected, because its meaning would be a guess.
func TestOddServer(t *testing.T) {
	if _, err := parse(t, `{"mcpServers": {"a": {"command": "\ud83d"}}}`).Servers[0].Transport(t.Context(), nil); err == nil {
		t.Error("a command that is not valid text")
	}
}

// The options of a VS Code input may be strings, or objects with a label.
func TestInputOptions(t *testing.T) {
	got := parse(t, `{"servers": {}, "inputs": [
		{"id": "region", "type": "pickString", "default": 1, "options": ["eu", {"label": "United States", "value": "us"}, 7, {"label": "none"}]}
	]}`).Inputs
	want := []config.Input{{ID: "region", Type: "pickString", Default: "1", Options: []string{"eu", "us", "7"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestUnknownServer(t *testing.T) {
	_, err := parse(t, `{"mcpServers": {"github": {"command": "x"}}}`).Server("githup")
	if want := `config: mcp.json: there is no server "githup"; did you mean "github"?`; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

// If several servers use an input, the user is asked for it once.
func TestInputs(t *testing.T) {
	file := parse(t, `{
		"servers": {
			"a": {"command": "x", "env": {"KEY": "${input:key}"}},
			"b": {"url": "https://example.com", "headers": {"X-Key": "${input:key}"}}
		},
		"inputs": [{"id": "key", "type": "promptString", "description": "The key", "password": true, "default": "none"}]
	}`)
	var asked []config.Input
	opts := &config.Options{Input: func(_ context.Context, in config.Input) (string, error) {
		asked = append(asked, in)
		return "secret", nil
	}}
	for _, server := range file.Servers {
		if _, err := server.Transport(t.Context(), opts); err != nil {
			t.Error(err)
		}
	}
	want := []config.Input{{ID: "key", Type: "promptString", Description: "The key", Default: "none", Password: true}}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
}

func TestLocations(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, home)
	}
	hosts := map[string]bool{}
	for _, l := range config.Locations() {
		if !strings.HasPrefix(l.Path, home) {
			t.Errorf("%s: %s is not below %s", l.Host, l.Path, home)
		}
		hosts[l.Host] = true
	}
	for _, host := range []string{"Claude Desktop", "Claude Code", "VS Code", "VS Code Insiders", "Cursor", "Windsurf", "Zed", "opencode", "Gemini CLI", "LM Studio", "Copilot CLI", "Kiro", "Amazon Q", "Cline"} {
		if !hosts[host] {
			t.Errorf("there is no location of %s", host)
		}
	}
}

// Whatever a file contains, parsing it and using its servers does not panic.
func FuzzParse(f *testing.F) {
	f.Add(`{"mcpServers": {"a": {"command": "${X:-y}", "args": ["${input:i}"], "env": {"A": null}}}, "inputs": [{"id": "i"}]}`)
	f.Add(`{"mcp": {"a": {"command": ["x"], "environment": {"A": "{env:X}"}}}, "projects": {"/": {"mcpServers": {"b": {"url": "https://x/", "oauth": {"scopes": "a"}}}}}}`)
	f.Add("\xff\xfe{\x00}\x00")
	f.Add("{// x\n\"servers\": {/* y */ \"a\": {\"url\": \"https://x/\", \"headers\": {\"A\": \"\\u0000\"}},},}")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := config.Parse("f", []byte(text))
		if err != nil {
			return
		}
		for _, s := range file.ForDirectory("/a").Servers {
			if strings.Contains(text, "envFile") {
				continue
			}
			_, _ = s.Transport(t.Context(), &config.Options{LookupEnv: vars("X=1"), Logger: slog.New(slog.DiscardHandler)})
		}
	})
}

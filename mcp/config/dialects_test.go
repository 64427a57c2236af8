// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-psi/psi/mcp/config"
	"github.com/go-psi/psi/mcphttp"
)

// use returns what a server's Transport warns about, and its error.
func use(t *testing.T, s *config.Server, opts *config.Options) (warnings string, err error) {
	t.Helper()
	var log strings.Builder
	var o config.Options
	if opts != nil {
		o = *opts
	}
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	_, err = s.Transport(t.Context(), &o)
	return strings.ReplaceAll(log.String(), `\"`, `"`), err
}

// Hosts list servers in different places of their files.
func TestFindingRM4Places(t *testing.T) {
	for host, text := range map[string]string{
		"plugin of Claude Code": `{"a": {"command": "npx", "args": ["-y", "server"], "env": {"KEY": "1"}}}`,
		"VS Code settings":      `{"editor.fontSize": 12, "mcp": {"inputs": [{"id": "key"}], "servers": {"a": {"command": "npx", "args": ["-y", "server"], "env": {"KEY": "${input:key}"}}}}}`,
		"Zed":                   `{"theme": "One", "context_servers": {"a": {"source": "custom", "command": "npx", "args": ["-y", "server"], "env": {"KEY": "1"}}}}`,
		"older Zed":             `{"context_servers": {"a": {"command": {"path": "npx", "args": ["-y", "server"], "env": {"KEY": "1"}}, "settings": {}}}}`,
		"opencode":              `{"$schema": "https://opencode.ai/config.json", "mcp": {"a": {"type": "local", "command": ["npx", "-y", "server"], "environment": {"KEY": "1"}, "enabled": true}}}`,
		"Copilot":               `{"mcp_servers": {"a": {"type": "local", "command": "npx", "args": ["-y", "server"], "env": {"KEY": "1"}, "tools": ["*"]}}}`,
		"a list and arguments":  `{"mcpServers": {"a": {"command": ["npx", "-y"], "args": ["server"], "env": {"KEY": "1"}}}}`,
	} {
		t.Run(host, func(t *testing.T) {
			file := parse(t, text)
			got, err := file.Server("a")
			if err != nil || len(file.Servers) != 1 {
				t.Fatalf("%d servers, %v", len(file.Servers), err)
			}
			if got.Type != "stdio" || got.Command != "npx" || !reflect.DeepEqual(got.Args, []string{"-y", "server"}) || len(got.Env) != 1 || got.IncludeTools != nil {
				t.Errorf("got %+v", got)
			}
			if strings.Contains(text, "input:") != (len(file.Inputs) == 1) {
				t.Errorf("the inputs are %v", file.Inputs)
			}
		})
	}
	got := parse(t, `{"mcp": {"a": {"type": "remote", "url": "https://example.com/mcp"}}}`).Servers[0]
	if got.Type != "http" || got.URL != "https://example.com/mcp" {
		t.Errorf("got %+v", got)
	}
}

// Files and members of other meanings list no servers.
func TestFindingRM4NoServers(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"mcpServers": null}`,
		`{"mcp": {"allowed": ["a"]}, "theme": "dark"}`, // Gemini CLI
		`{"mcp": true}`,
		`{"name": "x", "statusLine": {"command": "x"}}`,
		`{"permissions": {}, "hooks": {}}`,
		`{"command": "npx", "args": []}`,
	} {
		if _, err := config.Parse("mcp.json", []byte(text)); !errors.Is(err, config.ErrNoServers) && !strings.Contains(fmt.Sprint(err), "want servers by name") {
			t.Errorf("%s: %v", text, err)
		}
	}
	file := parse(t, `{"mcpServers": {"a": {"command": "x"}}, "servers": {"prod": "https://example.com"}, "mcp": {"allowed": []}, "other": {"command": "y"}}`)
	if len(file.Servers) != 1 {
		t.Errorf("got %d servers", len(file.Servers))
	}
}

// If a file is written as Claude Code writes ~/.claude.json, the servers of a project apply in
// its directory and below, and the nearest one replaces others of its name.
func TestFindingR10Projects(t *testing.T) {
	home := t.TempDir()
	slashed := func(path ...string) string {
		return strconv.Quote(filepath.ToSlash(filepath.Join(append([]string{home}, path...)...)))
	}
	projects := `"projects": {
		` + slashed("a") + `: {"history": [], "mcpServers": {"one": {"command": "of-a"}, "two": {"command": "of-a"}}},
		` + slashed("a", "b") + `: {"mcpServers": {"two": {"command": "of-b"}}},
		` + slashed("c") + `: {"mcpServers": {}},
		"relative": {"mcpServers": {"one": {"command": "nowhere"}}},
		"odd": 1
	}`
	for text, wants := range map[string]map[string]string{
		`{"mcpServers": {"one": {"command": "of-all"}}, ` + projects + `}`: {
			"": "one=of-all", "a": "one=of-a two=of-a", "a/x/y": "one=of-a two=of-a", "a/b/c": "one=of-a two=of-b", "ab": "one=of-all", "c": "one=of-all",
		},
		`{` + projects + `}`:                        {"": "", "a/b": "one=of-a two=of-b", "c": ""},
		`{"mcpServers": {}, ` + projects + `}`:      {"": "", "a": "one=of-a two=of-a"},
		`{"numStartups": 1, "projects": {"/": {}}}`: {"": "", "a": ""},
	} {
		file := parse(t, text)
		before := slices.Clone(file.Servers)
		for dir, want := range wants {
			var got []string
			for _, s := range file.ForDirectory(filepath.Join(home, filepath.FromSlash(dir))).Servers {
				got = append(got, s.Name+"="+s.Command)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: in %q: got %v, want %s", text, dir, got, want)
			}
		}
		if !slices.Equal(file.Servers, before) {
			t.Error("ForDirectory has changed the file")
		}
	}
	if err := os.Mkdir(filepath.Join(home, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(home, "a"))
	if got := parse(t, `{`+projects+`}`).ForDirectory("").Servers; len(got) != 2 {
		t.Errorf("in the working directory: got %d servers", len(got))
	}
}

// Of several members with the same name, the last one is used, as in all hosts. Within a
// server, there is a warning that names it.
func TestFindingR5Duplicates(t *testing.T) {
	file := parse(t, `{"theme": "a", "theme": "b", "mcpServers": {
		"a": {"command": "x", "disabled": true, "disabled": false, "env": {"K": "1", "K": "2"}},
		"b": {"command": "x"},
		"b": {"command": "y"}
	}, "servers": {"b": {"command": "z"}, "c": {"command": "z"}}}`)
	names := ""
	for _, s := range file.Servers {
		names += s.Name
	}
	if names != "abc" {
		t.Fatalf("the servers are %s", names)
	}
	a, b := file.Servers[0], file.Servers[1]
	if a.Disabled || a.Env["K"] != "2" || b.Command != "y" {
		t.Errorf("got %+v and %+v", a, b)
	}
	if warnings, err := use(t, a, nil); err != nil || !strings.Contains(warnings, `config: mcp.json: server "a": "disabled": more than once; the last one is used`) {
		t.Errorf("a: %v, warned %s", err, warnings)
	}
	if warnings, err := use(t, b, nil); err != nil || !strings.Contains(warnings, "more than once") || !strings.Contains(warnings, `"servers" has another server of this name`) {
		t.Errorf("b: %v, warned %s", err, warnings)
	}
}

// Members of other meanings beside the servers are not an error. An error about something that
// is missing says what they are.
func TestFindingR5OtherMeanings(t *testing.T) {
	file := parse(t, `{"mcpServers": {"a": {"command": "${input:x}"}, "b": {"command": "x"}}, "servers": ["x"], "inputs": {"x": 1}}`)
	if _, err := use(t, file.Servers[1], nil); err != nil {
		t.Error(err)
	}
	if _, err := use(t, file.Servers[0], nil); err == nil || !strings.Contains(err.Error(), `the file has no input "x"; inputs: must not be a JSON object`) {
		t.Error(err)
	}
	file = parse(t, `{"servers": {"a": {"command": "x"}}, "inputs": [1, {"id": "x"}, {"id": 2}]}`)
	if len(file.Inputs) != 1 || file.Inputs[0].ID != "x" {
		t.Errorf("the inputs are %v", file.Inputs)
	}
}

// Files that PowerShell has written are UTF-16, with or without a byte order mark.
func TestFindingR5UTF16(t *testing.T) {
	units := utf16.Encode([]rune(`{"mcpServers": {"a": {"command": "x", "args": ["ä😀"]}}}`))
	for order, mark := range map[binary.AppendByteOrder]string{binary.LittleEndian: "\xff\xfe", binary.BigEndian: "\xfe\xff"} {
		var data []byte
		for _, u := range units {
			data = order.AppendUint16(data, u)
		}
		for _, mark := range []string{"", mark} {
			file, err := config.Parse("mcp.json", append([]byte(mark), data...))
			if err != nil || file.Servers[0].Args[0] != "ä😀" {
				t.Errorf("%v with the mark %q: %v", order, mark, err)
			}
		}
		if _, err := config.Parse("mcp.json", append([]byte(mark), data[:len(data)-1]...)); err == nil {
			t.Errorf("%v, cut off: no error", order)
		}
		invalid := bytes.Replace(data, order.AppendUint16(nil, 0xd83d), order.AppendUint16(nil, 'x'), 1)
		if file, err := config.Parse("mcp.json", append([]byte(mark), invalid...)); err != nil {
			t.Error(err)
		} else if _, err := use(t, file.Servers[0], nil); err == nil {
			t.Errorf("%v with an unpaired surrogate: no error", order)
		}
	}
}

// An error about the syntax says in which member it is.
func TestFindingR5ErrorsNameTheMember(t *testing.T) {
	_, err := config.Parse("f", []byte("{\"mcpServers\": {\n\"a\": {\"args\": [\"x\" \"y\"]}}}"))
	if err == nil || !strings.HasPrefix(err.Error(), "config: f: line 2, column 20: ") || !strings.Contains(err.Error(), `(in "/mcpServers/a/args`) {
		t.Error(err)
	}
}

// Headers, environments, types and selections of tools are read under the names that hosts
// give them.
func TestFindingR8Members(t *testing.T) {
	for text, want := range map[string]*config.Server{
		`{"url": "https://example.com", "requestInit": {"headers": {"Authorization": "Bearer x"}}}`: {
			Type: "http", URL: "https://example.com", Headers: map[string]string{"Authorization": "Bearer x"},
		},
		`{"url": "https://example.com", "headers": {"A": "1"}, "requestInit": {"headers": {"A": "2", "B": "3"}}}`: {
			Type: "http", URL: "https://example.com", Headers: map[string]string{"A": "1", "B": "3"},
		},
		`{"url": "https://example.com", "transportType": "sse"}`:                              {Type: "sse", URL: "https://example.com"},
		`{"command": "x", "environment": {"A": "1"}}`:                                         {Type: "stdio", Command: "x", Env: map[string]string{"A": "1"}},
		`{"command": "x", "tools": ["one"]}`:                                                  {Type: "stdio", Command: "x", IncludeTools: []string{"one"}},
		`{"command": "x", "tools": []}`:                                                       {Type: "stdio", Command: "x", IncludeTools: []string{}},
		`{"command": "x", "tools": ["*"], "autoApprove": ["y"], "author": "z", "timeout": 1}`: {Type: "stdio", Command: "x"},
	} {
		got := parse(t, `{"mcpServers": {"a": `+text+`}}`).Servers[0]
		want.Name, want.Place, want.Members = "a", "mcpServers", got.Members
		if warnings, err := use(t, got, nil); err != nil || warnings != "" {
			t.Errorf("%s: %v, warned %s", text, err, warnings)
		}
		a, b := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
		for i := range a.NumField() {
			if f := a.Type().Field(i); f.IsExported() && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
				t.Errorf("%s: %s is %#v, want %#v", text, f.Name, a.Field(i), b.Field(i))
			}
		}
	}
}

// Unknown members that look like headers, credentials or environments are reported.
func TestFindingR8UnknownMembers(t *testing.T) {
	for _, name := range []string{"http_headers", "Headers", "bearer_token_env_var", "apiKey", "auth", "authorization", "authProviderType", "envVars", "cookies"} {
		got := parse(t, `{"mcpServers": {"a": {"url": "https://example.com", "`+name+`": "secret-value", "timeout": 5}}}`).Servers[0]
		warnings, err := use(t, got, nil)
		if err != nil || !strings.Contains(warnings, `server "a": "`+name+`": unknown, and left out; headers are read from "headers", variables from "env"`) {
			t.Errorf("%s: %v, warned %s", name, err, warnings)
		}
		if strings.Contains(warnings, "secret-value") || strings.Contains(warnings, "timeout") {
			t.Errorf("%s: warned %s", name, warnings)
		}
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `, "token%03d%s": 1`, i, strings.Repeat("x", 1000))
	}
	if warnings, _ := use(t, parse(t, `{"mcpServers": {"a": {"command": "x"`+many.String()+`}}}`).Servers[0], nil); len(warnings) > 1000 || !strings.Contains(warnings, "and 995 more") {
		t.Errorf("%d bytes of warnings: %.1000s", len(warnings), warnings)
	}
}

// A selection that cannot be read is an error, because all tools would be used otherwise.
func TestFindingR8OddSelection(t *testing.T) {
	for _, member := range []string{`"tools": {"a": false}`, `"includeTools": "a"`, `"excludeTools": [1]`, `"disabled": "yes"`} {
		if _, err := use(t, parse(t, `{"mcpServers": {"a": {"command": "x", `+member+`}}}`).Servers[0], nil); err == nil {
			t.Errorf("%s: no error", member)
		}
	}
}

// {env:NAME} is a variable of opencode.
func TestFindingR8VariablesOfOpencode(t *testing.T) {
	headers := `{"mcp": {"a": {"type": "remote", "url": "https://example.com/{env:PATH_OF_IT}", "headers": {"Authorization": "Bearer {env:TOKEN} {env:not one} ${env:TOKEN}"}}}}`
	var got string
	_, err := use(t, parse(t, headers).Servers[0], &config.Options{LookupEnv: vars("TOKEN=t", "PATH_OF_IT=mcp"), HTTP: func(url string, _ *config.OAuth) (*mcphttp.TransportOptions, error) {
		got = url
		return &mcphttp.TransportOptions{Header: http.Header{}}, nil
	}})
	if err != nil || got != "https://example.com/mcp" {
		t.Errorf("%v, the URL is %s", err, got)
	}
	if _, err := use(t, parse(t, headers).Servers[0], &config.Options{LookupEnv: vars("TOKEN=t")}); err == nil || !strings.Contains(err.Error(), "url: {env:PATH_OF_IT}: the environment does not have it") {
		t.Error(err)
	}
}

// A login is passed to the host, with its variables replaced. Parts that cannot be used are left
// out with a warning.
func TestFindingRM5OAuth(t *testing.T) {
	for oauth, want := range map[string]*config.OAuth{
		`{"clientId": "c", "callbackPort": 8080, "scopes": ["a", "b"]}`: {ClientID: "c", CallbackPort: 8080, Scopes: []string{"a", "b"}},
		`{"clientId": "${ID}", "scopes": "a ${ID}"}`:                    {ClientID: "id", Scopes: []string{"a", "id"}},
		`{"scope": "a b"}`: {Scopes: []string{"a", "b"}},
		`{"authServerMetadataUrl": "https://as.example.com/metadata"}`:             {AuthorizationServerMetadata: "https://as.example.com/metadata"},
		`{"clientId": "c", "callbackPort": "x", "scopes": 1, "clientSecret": "s"}`: {ClientID: "c"},
		`{"scopes": ["a", 1, "b"]}`:                 {Scopes: []string{"a", "b"}},
		`{"callbackPort": 65536, "clientId": null}`: {},
		`false`: nil,
		`[]`:    nil,
	} {
		file := parse(t, `{"mcpServers": {"a": {"url": "https://example.com", "oauth": `+oauth+`}}}`)
		var got *config.OAuth
		warnings, err := use(t, file.Servers[0], &config.Options{LookupEnv: vars("ID=id"), HTTP: func(_ string, login *config.OAuth) (*mcphttp.TransportOptions, error) {
			got = login
			return nil, nil
		}})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v, %v", oauth, got, want, err)
		}
		for text, member := range map[string]string{`"x"`: "oauth.callbackPort", "65536": "oauth.callbackPort", ": 1": "oauth.scopes", ", 1": "oauth.scopes", "Secret": `oauth: "clientSecret"`, "[]": "oauth: "} {
			if strings.Contains(oauth, text) && oauth != `{"clientId": "c", "callbackPort": 8080, "scopes": ["a", "b"]}` && !strings.Contains(warnings, `server "a": `+member) {
				t.Errorf("%s: no warning about %s: %s", oauth, member, warnings)
			}
		}
	}
}

// A host can read its own settings of a server.
func TestFindingRM5Members(t *testing.T) {
	got := parse(t, `{"mcpServers": {"a": {"command": "x", "timeout": 5, "alwaysAllow": ["y"], "args": null}, "b": 1}}`).Servers
	want := map[string]json.RawMessage{"command": []byte(`"x"`), "timeout": []byte("5"), "alwaysAllow": []byte(`["y"]`), "args": []byte("null")}
	if !maps.EqualFunc(got[0].Members, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) || got[1].Members != nil {
		t.Errorf("got %s and %s", got[0].Members, got[1].Members)
	}
}

// The number of members of an object is bounded, because each takes more memory than text.
func TestMembersAreBounded(t *testing.T) {
	for n, fits := range map[int]bool{1 << 16: true, 1<<16 + 1: false} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `,"%d":0`, i)
		}
		file := parse(t, `{"mcpServers": {"a": {`+text.String()[1:]+`}}}`)
		if _, err := use(t, file.Servers[0], nil); strings.Contains(fmt.Sprint(err), "more than 65536 members") == fits {
			t.Errorf("%d members: %v", n, err)
		}
	}
}

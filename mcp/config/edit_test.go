// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/config"
)

// counter is the server that the tests add.
var counter = &config.Server{Name: "counter", Command: "/usr/bin/counter", Args: []string{"-v"}, Env: map[string]string{"KEY": "<1>"}}

// location returns the file of a host.
func location(t *testing.T, host string) config.Location {
	t.Helper()
	for _, l := range config.Locations() {
		if l.Host == host {
			return l
		}
	}
	t.Fatalf("there is no host %q", host)
	return config.Location{}
}

// A new file has the dialect of its host.
func TestSetInNewFiles(t *testing.T) {
	notes := &config.Server{Name: "notes", URL: "https://example.com/mcp", Headers: map[string]string{"X-Key": "1"}}
	for host, want := range map[string][2]string{
		"Claude Desktop": {`{"mcpServers":{"counter":{"command":"/usr/bin/counter","args":["-v"],"env":{"KEY":"<1>"}}}}`, ""},
		"Claude Code": {
			`{"mcpServers":{"counter":{"type":"stdio","command":"/usr/bin/counter","args":["-v"],"env":{"KEY":"<1>"}}}}`,
			`{"mcpServers":{"notes":{"type":"http","url":"https://example.com/mcp","headers":{"X-Key":"1"}}}}`,
		},
		"VS Code": {
			`{"servers":{"counter":{"type":"stdio","command":"/usr/bin/counter","args":["-v"],"env":{"KEY":"<1>"}}}}`,
			`{"servers":{"notes":{"type":"http","url":"https://example.com/mcp","headers":{"X-Key":"1"}}}}`,
		},
		"Cursor": {
			`{"mcpServers":{"counter":{"command":"/usr/bin/counter","args":["-v"],"env":{"KEY":"<1>"}}}}`,
			`{"mcpServers":{"notes":{"url":"https://example.com/mcp","headers":{"X-Key":"1"}}}}`,
		},
		"Windsurf": {
			`{"mcpServers":{"counter":{"command":"/usr/bin/counter","args":["-v"],"env":{"KEY":"<1>"}}}}`,
			`{"mcpServers":{"notes":{"serverUrl":"https://example.com/mcp","headers":{"X-Key":"1"}}}}`,
		},
		"Zed": {
			`{"context_servers":{"counter":{"command":"/usr/bin/counter","args":["-v"],"env":{"KEY":"<1>"}}}}`,
			`{"context_servers":{"notes":{"url":"https://example.com/mcp","headers":{"X-Key":"1"}}}}`,
		},
		"opencode": {
			`{"mcp":{"counter":{"type":"local","command":["/usr/bin/counter","-v"],"environment":{"KEY":"<1>"}}}}`,
			`{"mcp":{"notes":{"type":"remote","url":"https://example.com/mcp","headers":{"X-Key":"1"}}}}`,
		},
		"Copilot CLI": {
			`{"mcpServers":{"counter":{"type":"local","command":"/usr/bin/counter","args":["-v"],"env":{"KEY":"<1>"},"tools":["*"]}}}`,
			`{"mcpServers":{"notes":{"type":"http","url":"https://example.com/mcp","headers":{"X-Key":"1"},"tools":["*"]}}}`,
		},
	} {
		l := location(t, host)
		for i, s := range []*config.Server{counter, notes} {
			got, err := l.Set(nil, s)
			if want[i] == "" {
				if !errors.Is(err, config.ErrNoURLs) {
					t.Errorf("%s: %v", host, err)
				}
				continue
			}
			compact := strings.NewReplacer("\n", "", "  ", "", ": ", ":").Replace(string(got))
			if err != nil || compact != want[i] {
				t.Errorf("%s: got %s, %v, want %s", host, got, err, want[i])
			}
			// The file that has the server stays as it is.
			if again, err := l.Set(got, s); string(again) != string(got) || err != nil {
				t.Errorf("%s: again it is %s, %v", host, again, err)
			}
		}
	}
}

// edits are files before and after the server has been added, and after it has been removed.
var edits = []struct{ name, before, after, removed string }{
	{
		"comments, tabs and what is unknown",
		"// mine\n{\n\t\"theme\": \"dark\", // not light\n\t\"context_servers\": {\n\t\t/* first */ \"a\": {\"command\": \"x\"} // no comma\n\t\t// the end\n\t},\n\t\"z\": [1,2 , 3],\n}\n",
		"// mine\n{\n\t\"theme\": \"dark\", // not light\n\t\"context_servers\": {\n\t\t/* first */ \"a\": {\"command\": \"x\"}, // no comma\n\t\t// the end\n\t\t\"counter\": {\n\t\t\t\"command\": \"/usr/bin/counter\",\n\t\t\t\"args\": [\n\t\t\t\t\"-v\"\n\t\t\t],\n\t\t\t\"env\": {\n\t\t\t\t\"KEY\": \"<1>\"\n\t\t\t}\n\t\t}\n\t},\n\t\"z\": [1,2 , 3],\n}\n",
		"=",
	},
	{
		"a trailing comma, and four spaces",
		"{\n    \"context_servers\": {\n        \"a\": {},\n    }\n}",
		"{\n    \"context_servers\": {\n        \"a\": {},\n        \"counter\": {\n            \"command\": \"/usr/bin/counter\",\n            \"args\": [\n                \"-v\"\n            ],\n            \"env\": {\n                \"KEY\": \"<1>\"\n            }\n        },\n    }\n}",
		"=",
	},
	{
		"one line",
		`{"context_servers":{"a":{"command":"x"}},"b":1}`,
		`{"context_servers":{"a":{"command":"x"}, "counter": {"command": "/usr/bin/counter", "args": ["-v"], "env": {"KEY": "<1>"}}},"b":1}`,
		"=",
	},
	{
		"no list, Windows line ends, a byte order mark",
		"\ufeff{\r\n  \"a\": 1 // one\r\n}\r\n",
		"\ufeff{\r\n  \"a\": 1, // one\r\n  \"context_servers\": {\r\n    \"counter\": {\r\n      \"command\": \"/usr/bin/counter\",\r\n      \"args\": [\r\n        \"-v\"\r\n      ],\r\n      \"env\": {\r\n        \"KEY\": \"<1>\"\r\n      }\r\n    }\r\n  }\r\n}\r\n",
		"\ufeff{\r\n  \"a\": 1, // one\r\n  \"context_servers\": {\r\n  }\r\n}\r\n",
	},
	{
		"null, and a comment that ends the only line",
		"{ \"context_servers\": null // none\n}",
		"{ \"context_servers\": {\n  \"counter\": {\n    \"command\": \"/usr/bin/counter\",\n    \"args\": [\n      \"-v\"\n    ],\n    \"env\": {\n      \"KEY\": \"<1>\"\n    }\n  }\n} // none\n}",
		"{ \"context_servers\": {\n} // none\n}",
	},
	{
		"changed, with members that belong to the host",
		"{\"context_servers\": {\n  // the first\n  \"counter\": {\n    \"url\": \"https://old\", // gone\n    \"disabled\": false,\n    \"headers\": {\"A\": \"b\"},\n    \"args\": [ \"-v\" ]\n  }\n}}",
		"{\"context_servers\": {\n  // the first\n  \"counter\": {\n    // gone\n    \"disabled\": false,\n    \"args\": [ \"-v\" ],\n    \"command\": \"/usr/bin/counter\",\n    \"env\": {\n      \"KEY\": \"<1>\"\n    }\n  }\n}}",
		"{\"context_servers\": {\n  // the first\n}}",
	},
	{
		"the first of two",
		"{\"context_servers\": {\n  \"counter\": {\"command\": \"/usr/bin/counter\", \"args\": [\"-v\"], \"env\": {\"KEY\": \"<1>\"}}, // mine\n  \"b\": 1\n}}",
		"=",
		"{\"context_servers\": {\n  // mine\n  \"b\": 1\n}}",
	},
}

// Everything else in the file stays as it is.
func TestEdit(t *testing.T) {
	zed := location(t, "Zed")
	for _, test := range edits {
		want := test.after
		if want == "=" {
			want = test.before
		}
		got, err := zed.Set([]byte(test.before), counter)
		if err != nil || string(got) != want {
			t.Errorf("%s: it is\n%s\n%v, want\n%s", test.name, got, err, want)
			continue
		}
		want = test.removed
		if want == "=" {
			want = test.before
		}
		removed, err := zed.Remove(got, "counter")
		if err != nil || string(removed) != want {
			t.Errorf("%s: without the server it is\n%s\n%v, want\n%s", test.name, removed, err, want)
		}
	}
}

// The tools that the user has selected in the host stay selected.
func TestSetKeepsSelection(t *testing.T) {
	const before = `{"mcpServers": {"counter": {"type": "local", "command": "old", "tools": ["count"]}}}`
	got, err := location(t, "Copilot CLI").Set([]byte(before), counter)
	if err != nil || !strings.Contains(string(got), `"tools": ["count"]`) || !strings.Contains(string(got), counter.Command) {
		t.Errorf("got %s, %v", got, err)
	}
}

// A command that becomes a URL has no environment, and a URL that becomes a command no headers.
func TestSetChangesKind(t *testing.T) {
	l := location(t, "Cursor")
	command, err := l.Set(nil, counter)
	if err != nil {
		t.Fatal(err)
	}
	url, err := l.Set(command, &config.Server{Name: "counter", URL: "https://example.com", Headers: map[string]string{"X-Key": "1"}})
	if err != nil || strings.Contains(string(url), "env") || strings.Contains(string(url), "command") || strings.Contains(string(url), "args") {
		t.Errorf("as a URL, it is %s, %v", url, err)
	}
	again, err := l.Set(url, counter)
	if err != nil || strings.Contains(string(again), "headers") || strings.Contains(string(again), "url") {
		t.Errorf("as a command again, it is %s, %v", again, err)
	}
}

// A file that cannot be edited safely is rejected, with the place of the mistake.
func TestEditMistakes(t *testing.T) {
	l := config.Location{Path: "f.json"}
	for text, want := range map[string]string{
		"{\n  \"mcpServers\": {\n    \"a\": {} \"b\": {}\n}}": "config: f.json: line 3, column 13: ",
		"[]":                                   "config: f.json: must not be a JSON array",
		`{"mcpServers": []}`:                   "config: f.json: mcpServers: want an object",
		`{"mcpServers": {}, "mcpServers": {}}`: `config: f.json: "mcpServers": more than once`,
		`{"mcpServers": {"counter": {}, "counter": {}}}`: `config: f.json: "counter": more than once`,
		`{"mcpServers": {"counter": 1}}`:                 "config: f.json: mcpServers.counter: want an object",
		`{"mcpServers": {"counter": {}}, `:               "config: f.json: line 1, column 33: ",
		"{\x00\"\x00a\x00\"\x00:\x001\x00}\x00":          "config: f.json: the file is UTF-16",
	} {
		if got, err := l.Set([]byte(text), counter); err == nil || !strings.HasPrefix(err.Error(), want) || got != nil {
			t.Errorf("%s: %q, %v, want %s", text, got, err, want)
		}
	}
	for name, s := range map[string]*config.Server{
		"config: the server is nil":                                        nil,
		"config: f.json: the server has no name":                           {Command: "x"},
		`config: f.json: server "b": a name or a value is not valid UTF-8`: {Name: "b", Command: "x", Env: map[string]string{"A": "\xff"}},
		`config: f.json: server "a": want either a command or a url`:       {Name: "a"},
		`config: f.json: another list of the file has a server "counter"`:  counter,
	} {
		if _, err := (config.Location{Path: "f.json", Place: "servers"}).Set([]byte(`{"mcpServers": {"counter": {"command": "other"}}}`), s); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
	if _, err := l.Remove([]byte(`{"mcpServers": {"counter": {}}}`), "countr"); err == nil || !strings.Contains(err.Error(), `there is no server "countr"; did you mean "counter"?`) {
		t.Error(err)
	}
}

// Whatever a file looks like, adding and removing a server leaves a valid file, in which no
// other server is changed.
func FuzzEdit(f *testing.F) {
	for _, e := range edits {
		f.Add(e.before)
		f.Add(strings.ReplaceAll(e.before, "context_servers", "mcpServers"))
	}
	f.Add(`{"mcpServers": {"a": {"command": "x"}/* c */, /* d */ "counter": {} /* e */ , "b": {} }}`)
	f.Fuzz(func(t *testing.T, before string) {
		l := config.Location{Path: "f"}
		base, err := l.Set([]byte(before), &config.Server{Name: "base", Command: "x"})
		if err != nil {
			return
		}
		added, err := l.Set(base, counter)
		if err != nil {
			return // more than once
		}
		removed, err := l.Remove(added, "counter")
		if err != nil {
			t.Fatalf("%q: %v", added, err)
		}
		want := others(t, string(base))
		if got := others(t, string(added)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: the other servers are %v, want %v", added, got, want)
		}
		if got := others(t, string(removed)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: the other servers are %v, want %v", removed, got, want)
		}
	})
}

// others returns what a file says about the other servers.
func others(t *testing.T, text string) map[string]string {
	t.Helper()
	found := map[string]string{}
	file, err := config.Parse("f", []byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	for _, s := range file.Servers {
		if s.Name == "counter" {
			continue
		}
		members, err := json.Marshal(s.Members)
		if err != nil {
			t.Fatal(err)
		}
		found[s.Name] = string(members)
	}
	return found
}

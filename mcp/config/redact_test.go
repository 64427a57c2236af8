// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config_test

import (
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/config"
)

// What a person reads has no secrets, and the lines of the file.
func TestRedact(t *testing.T) {
	const file = "\ufeff// token: kept-1\n{\n" +
		`"mcpServers": {"a": {"command": "run", "args": ["-v", "--api-key", "gone-1", "--user", "ann", "--token=gone-2", "-q"],` + "\n" +
		`	"env": {"A": "gone-3", "B": 4711, "E": ""}, /* "x" */ "url": "https://ann:gone-4@example.com/", ` + "\n" +
		`	"headers": {"X": ["gone-5"]}, "password": {"is": "gone-6"}, "disabled": false, "b": null}},` + "\n" +
		`"accessToken": "gone-7", "n": 1,}` + "\r\n"
	got := string(config.Redact([]byte(file)))
	if strings.Contains(got, "gone") || strings.Contains(got, "4711") || strings.Count(got, "\n") != strings.Count(file, "\n") {
		t.Errorf("got %s", got)
	}
	for _, want := range []string{`"command": "run", "args": ["-v", "--api-key", "(redacted)", "--user", "ann", "--token=(redacted)`, `"E": ""`, `/* "x" */`, `"disabled": false, "b": null`, `"n": 1,}` + "\r\n", "\ufeff"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %s:\n%s", want, got)
		}
	}
	for _, text := range []string{"", "{", "{}}", "{]", `{"a" "b"}`} {
		if got := config.Redact([]byte(text)); text != "" && got != nil {
			t.Errorf("%s: got %q", text, got)
		}
	}
}

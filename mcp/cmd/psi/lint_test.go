// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/lint"
	"github.com/go-psi/psi/mcp"
)

func TestLint(t *testing.T) {
	url := serve(t, newServer())
	got := psi(t, "", "lint", url)
	const want = `note: tool "add" at /annotations: readOnlyHint is missing, so hosts take the tool for one that changes things and ask the user before each call; set readOnlyHint, and destructiveHint if it is false [read-only-hint]`
	if got.code != exitOK || !strings.HasPrefix(got.out, want+"\n") || !strings.Contains(got.out, "\n0 errors, 0 warnings, ") {
		t.Errorf("exit code %d, wrote:\n%s%s", got.code, got.out, got.errOut)
	}

	got = psi(t, "", "lint", "-json", "-prefix", strings.Repeat("p", 70), url)
	var found []lint.Finding
	if err := json.Unmarshal([]byte(got.out), &found); err != nil {
		t.Fatal(err, got)
	}
	if got.code != exitFailed || len(found) == 0 || found[0].Severity != lint.Error || found[0].Name != "add" || found[0].Rule != "tool-name" {
		t.Errorf("exit code %d, found %+v", got.code, found)
	}
	if got.errOut != "psi: the server has 2 errors\n" {
		t.Errorf("wrote %q", got.errOut)
	}
}

func TestLintOfNothing(t *testing.T) {
	url := serve(t, mcp.NewMux("empty", "v1", nil))
	if got := psi(t, "", "lint", url); got.code != exitOK || got.out != "0 errors, 0 warnings, 0 notes\n" {
		t.Errorf("got %+v", got)
	}
	if got := psi(t, "", "lint", "-json", url); got.code != exitOK || got.out != "[]\n" {
		t.Errorf("got %+v", got)
	}
	if got := psi(t, "", "lint", url, "more"); got.code != exitUsage || !strings.Contains(got.errOut, `what is "more"?`) {
		t.Errorf("got %+v", got)
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../.."

// maxText is the size of llms.txt in bytes: about 11,000 tokens, of the 128,000 or more that
// models can read.
const maxText = 44 << 10

func TestIsUpToDate(t *testing.T) {
	want, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "llms.txt"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("llms.txt is not up to date (%v): go generate ./internal/tools/llms", err)
	}
	if len(want) > maxText {
		t.Errorf("llms.txt has %d bytes; %d are the most", len(want), maxText)
	}
	if strings.Contains(string(want), "](../") {
		t.Error("llms.txt has a link that is relative to a page of the guide")
	}
}

// What a template names must exist.
func TestNamesWhatIsMissing(t *testing.T) {
	r := &repository{dir: root, packages: map[string]*docs{}}
	for what, f := range map[string]func() (string, error){
		"has no Gone":           func() (string, error) { return r.doc("mcp", "Gone") },
		"has no Mux.Gone":       func() (string, error) { return r.doc("mcp", "Mux.Gone") },
		`has no heading "Gone"`: func() (string, error) { return r.section("tools.md", "Gone") },
		"no such file":          func() (string, error) { return r.program("examples/gone.go") },
	} {
		if text, err := f(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %q, %v; want %s", text, err, what)
		}
	}
}

// Links become texts. Code that looks like a link stays as it is.
func TestPlain(t *testing.T) {
	got := plain("see [below](#below)\n```go\nCall[string](ctx)\n```\nand [psi](psi.md)")
	if want := "see below\n```go\nCall[string](ctx)\n```\nand psi"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

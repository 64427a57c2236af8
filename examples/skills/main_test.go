// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp"
)

// serveDir serves a directory until the test ends, and returns the URL.
func serveDir(t *testing.T, dir string) string {
	t.Helper()
	directory, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	mux, _, err := newServer(directory)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(mcphttp.NewHandler(mux, nil))
	t.Cleanup(server.Close)
	return server.URL
}

func TestLoad(t *testing.T) {
	url := serveDir(t, "skills")
	for name, want := range map[string]string{"refunds": "== references/rules.md", "apologies": "== templates/late.md"} {
		var out strings.Builder
		if err := load(t.Context(), &out, url, name); err != nil || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "name: "+name) {
			t.Errorf("%v\n%s", err, &out)
		}
	}
	if err := load(t.Context(), new(strings.Builder), url, "juggling"); err == nil || !strings.Contains(err.Error(), `no skill "juggling"`) {
		t.Error(err)
	}
}

// A directory with a mistake is not served, and the error says where it is.
func TestMistake(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "refunds"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "refunds", "SKILL.md"), []byte("# Refunds\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), "", dir, "", ""); err == nil || !strings.Contains(err.Error(), "refunds/SKILL.md: there is no front matter") {
		t.Error(err)
	}
}

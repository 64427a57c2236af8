// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The tables for this module have a row for mcp with nonzero figures.
func TestTables(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, "../../..", "", false); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`mcp( +[1-9]\d*){5}`, `total( +[1-9]\d*){5}`, `smallest stdio server +[1-9].*`} {
		if !regexp.MustCompile(`(?m)^` + row + `$`).MatchString(out.String()) {
			t.Errorf("no row %s in\n%s", row, out.String())
		}
	}
}

// The README states how many modules a server links, and the decisions name exactly these
// modules.
func TestFindingU19ModulesOfTheSmallestServers(t *testing.T) {
	readme, decisions := readFile(t, "README.md"), readFile(t, "docs/decisions.md")
	_, section, _ := strings.Cut(decisions, "\n## Dependencies\n")
	section, _, _ = strings.Cut(section, "\n## ")
	count := map[string]int{}
	for transport, pkg := range map[string]string{"stdio": "./mcpstdio", "HTTP": "./mcphttp"} {
		modules, err := linkedModules(t.Context(), "../../..", "./mcp", pkg)
		if err != nil {
			t.Fatal(err)
		}
		count[transport] = len(modules)
		for _, path := range modules {
			if !strings.Contains(section, "`"+path+"`") {
				t.Errorf("docs/decisions.md does not say why a server over %s links %s", transport, path)
			}
		}
	}
	named := regexp.MustCompile("`[a-z]+(\\.[a-z]+)+/[^`]*`").FindAllString(section, -1)
	if len(named) != count["HTTP"] {
		t.Errorf("docs/decisions.md names %d modules, and %d are linked", len(named), count["HTTP"])
	}
	want := fmt.Sprintf("A stdio server links %d modules besides psi, an HTTP server %d", count["stdio"], count["HTTP"])
	if !strings.Contains(readme, want) {
		t.Errorf("the README does not say: %s", want)
	}
}

// A server over stdio links neither net/http nor TLS, which are a fifth of its size.
func TestStdioServerHasNoHTTP(t *testing.T) {
	listed, err := runGo(t.Context(), "../../..", "list", "-deps", "./mcp", "./mcpstdio")
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.FieldsSeq(listed) {
		if pkg == "net/http" || pkg == "crypto/tls" || strings.HasSuffix(pkg, "/template") {
			t.Errorf("a server over stdio links %s", pkg)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(os.DirFS("../../.."), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The calls succeed, also when repeated.
func TestCalls(t *testing.T) {
	for _, c := range calls {
		makeCall := c.prepare()
		for range 2 {
			if got := makeCall(); !strings.Contains(got, wantResult) {
				t.Errorf("%s: got %s, want %s", c.title, got, wantResult)
			}
		}
	}
}

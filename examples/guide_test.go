// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package examples_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// maxPage is the number of lines of a page: about two screens, and the programs.
const maxPage = 150

// guidePages returns the text of the pages of the guide, by name.
func guidePages(t *testing.T) map[string]string {
	t.Helper()
	names, err := fs.Glob(os.DirFS(repository), "docs/guide/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no pages of the guide: %v", err)
	}
	pages := map[string]string{}
	for _, name := range names {
		pages[path.Base(name)] = readFile(t, name)
	}
	return pages
}

// fenced matches a block of code, which can be part of a list.
var fenced = regexp.MustCompile("(?ms)^( *)```(\\w*)\n(.*?)^ *```$")

// guideDirs are where the code of the guide is: the stores are modules of their own.
var guideDirs = []string{"examples/guide", "mcp/store/natsstore", "mcp/store/redisstore"}

// TestGuideCode checks that every program of the guide is one of examples/guide, whole, and
// every other piece of Go, and every page, a part of one or of a test there. They are run.
func TestGuideCode(t *testing.T) {
	whole, parts := guideSources(t)
	for name, text := range guidePages(t) {
		for _, block := range fenced.FindAllStringSubmatch(text, -1) {
			code := strings.ReplaceAll("\n"+block[3], "\n"+block[1], "\n")[1:]
			switch language := block[2]; language {
			case "go", "html", "js":
				if strings.HasPrefix(code, "package ") && !whole[code] || !strings.Contains(parts, "\n"+unindented(code)) {
					t.Errorf("%s: this is not in examples/guide:\n%s", name, code)
				}
			case "json":
				if !json.Valid([]byte(code)) {
					t.Errorf("%s: this is not JSON:\n%s", name, code)
				}
			case "sh", "text", "nginx", "caddy", "haproxy":
			default:
				t.Errorf("%s: a block of code in %q", name, language)
			}
		}
	}
}

// guideSources returns the texts of the Go files of guideDirs from the package clause on, and
// all of them together, with the pages, without indentation.
func guideSources(t *testing.T) (whole map[string]bool, parts string) {
	t.Helper()
	whole = map[string]bool{}
	var all strings.Builder
	for _, dir := range guideDirs {
		err := fs.WalkDir(os.DirFS(repository), dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || path.Ext(name) != ".go" && path.Ext(name) != ".html" {
				return err
			}
			text := readFile(t, name)
			whole[text[strings.Index(text, "\npackage ")+1:]] = true
			all.WriteString("\n" + unindented(text))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return whole, all.String()
}

// TestGuideContents checks that the contents name every page, and that pages are short.
func TestGuideContents(t *testing.T) {
	pages := guidePages(t)
	for name, text := range pages {
		if name != "README.md" && !strings.Contains(pages["README.md"], "("+name+")") {
			t.Errorf("the contents do not name %s", name)
		}
		if lines := strings.Count(text, "\n"); lines > maxPage {
			t.Errorf("%s has %d lines; %d are the most", name, lines, maxPage)
		}
	}
}

// TestTroubleshooting checks that the texts of the page about errors are in the source. "…"
// stands for what differs.
func TestTroubleshooting(t *testing.T) {
	source := librarySource(t)
	row := regexp.MustCompile("(?m)^\\| `([^`]+)`")
	rows := row.FindAllStringSubmatch(guidePages(t)["troubleshooting.md"], -1)
	if len(rows) < 20 {
		t.Errorf("the page has %d texts", len(rows))
	}
	for _, match := range rows {
		for part := range strings.SplitSeq(match[1], "…") {
			if !strings.Contains(source, strings.TrimSpace(part)) {
				t.Errorf("nothing says %q any more", match[1])
			}
		}
	}
}

// librarySource returns the Go code of the packages, without tests.
func librarySource(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"mcp", "mcphttp", "mcpstdio", "middleware", "jsonschema", "internal"} {
		err := fs.WalkDir(os.DirFS(repository), dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "node_modules" {
				return fs.SkipDir
			}
			if err == nil && path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
				all.WriteString(readFile(t, name))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

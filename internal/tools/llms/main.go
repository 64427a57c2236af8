// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command llms writes llms.txt, which tells an assistant what it needs to write programs with
// psi. The text comes from llms.tmpl, the examples, the guide and the doc comments, so that
// it says what they say. A test fails if the file is not what the command would write.
//
//	go generate ./internal/tools/llms
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

//go:generate go run . ../../..

//go:embed llms.tmpl
var page string

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: llms REPOSITORY")
	}
	text, err := generate(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(os.Args[1], "llms.txt"), text, 0o644); err != nil { //nolint:gosec // everyone may read it
		log.Fatal(err)
	}
}

// generate returns the text of llms.txt for the repository in a directory.
func generate(dir string) ([]byte, error) {
	r := &repository{dir: dir, packages: map[string]*docs{}}
	t, err := template.New("llms.tmpl").Funcs(template.FuncMap{
		"program": r.program, "section": r.section, "doc": r.doc, "whole": r.whole, "code": r.code, "links": r.links,
	}).Parse(page)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, nil)
	return out.Bytes(), err
}

// A repository is what the text is made of.
type repository struct {
	dir      string
	packages map[string]*docs // by directory
}

func (r *repository) read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, name)) //nolint:gosec // the template names it
	return string(text), err
}

// program returns a Go file from its package clause on.
func (r *repository) program(name string) (string, error) {
	text, err := r.read(name)
	if err != nil {
		return "", err
	}
	_, code, ok := strings.Cut(text, "\npackage ")
	if !ok {
		return "", fmt.Errorf("%s has no package clause", name)
	}
	return "package " + strings.TrimRight(code, "\n"), nil
}

// section returns what is under a heading of a page of the guide. "" is its beginning.
func (r *repository) section(name, heading string) (string, error) {
	text, err := r.read(filepath.Join("docs/guide", name))
	if err != nil {
		return "", err
	}
	before := "\n## " + heading + "\n"
	if heading == "" {
		before = "\n" // the title
	}
	_, rest, ok := strings.Cut(text, before)
	if !ok {
		return "", fmt.Errorf("%s has no heading %q", name, heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return strings.TrimSpace(plain(rest)), nil
}

var link = regexp.MustCompile(`\[([^]\n]+)\]\([^)\n]+\)`)

// plain replaces links by their texts, except in code: they are relative to a page that is
// elsewhere.
func plain(text string) string {
	parts := strings.Split(text, "```")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = link.ReplaceAllString(parts[i], "$1")
	}
	return strings.Join(parts, "```")
}

var row = regexp.MustCompile(`(?m)^\| \[([^]]+)\]\(([^)]+)\) \| (.*) \|$`)

// links returns a list of the pages of the guide.
func (r *repository) links() (string, error) {
	text, err := r.read("docs/guide/README.md")
	if err != nil {
		return "", err
	}
	pages, _, _ := strings.Cut(text, "\n## ")
	var out strings.Builder
	for _, m := range row.FindAllStringSubmatch(pages, -1) {
		fmt.Fprintf(&out, "- [%s](docs/guide/%s): %s\n", m[1], m[2], plain(m[3]))
	}
	if out.Len() == 0 {
		return "", errors.New("the guide has no table of pages")
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

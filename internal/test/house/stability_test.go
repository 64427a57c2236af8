// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package house_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestPackagesNameTheirTier checks that each public package is in one row of
// docs/stability.md, and that its package comment says which.
func TestPackagesNameTheirTier(t *testing.T) {
	for _, finding := range wrongTiers(t, os.DirFS(root(t))) {
		t.Error(finding)
	}
}

func TestWrongTiers(t *testing.T) {
	page := "| tier | packages |\n|---|---|\n| **stable** | `a`, `gone` |\n| **tool** | `b`, `cmd/c` |\n\nModules: `d` is stable.\n"
	got := wrongTiers(t, fstest.MapFS{
		"docs/stability.md": {Data: []byte(page)},
		"a/doc.go":          {Data: []byte(header + "// Package a.\n//\n// This package is stable, as docs/stability.md defines it.\npackage a\n")},
		"b/doc.go":          {Data: []byte(header + "// Package b.\n//\n// This package is stable, as docs/stability.md defines it.\npackage b\n")},
		"cmd/c/main.go":     {Data: []byte(header + "// Command c.\n//\n// The command is a tool, as docs/stability.md defines it.\npackage main\n")},
		"e/doc.go":          {Data: []byte(header + "// Package e.\npackage e\n")},
		"internal/f/doc.go": {Data: []byte(header + "// Package f.\npackage f\n")},
		"examples/g/doc.go": {Data: []byte(header + "// Command g.\npackage main\n")},
	})
	want := []string{
		"b/doc.go: the tier in the package comment is not tool, which docs/stability.md says",
		"docs/stability.md: there is no package gone",
		"e/doc.go: docs/stability.md does not name the tier of package e",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

var (
	tierRow  = regexp.MustCompile(`(?m)^\| \*\*([a-z ]+)\*\* \| ([^|]*) \|`)
	tierName = regexp.MustCompile("`([^`]+)`")
)

// tierSentences has what package comments say, by the tier's name in docs/stability.md.
var tierSentences = map[string]string{
	"stable":            "is stable, as docs/stability.md defines it",
	"follows its draft": "follows the draft of its extension, as docs/stability.md defines it",
	"tool":              "is a tool, as docs/stability.md defines it",
}

func wrongTiers(t *testing.T, files fs.FS) (findings []string) {
	t.Helper()
	page, err := fs.ReadFile(files, "docs/stability.md")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := readTree(files)
	if err != nil {
		t.Fatal(err)
	}
	tiers := map[string]string{}
	for _, row := range tierRow.FindAllStringSubmatch(string(page), -1) {
		for _, name := range tierName.FindAllStringSubmatch(row[2], -1) {
			tiers[name[1]] = row[1]
		}
	}
	found := map[string]bool{}
	for _, s := range tree {
		name := s.dir()
		if base := path.Base(s.path); base != "doc.go" && base != "main.go" || s.file.Doc == nil || belowAny(name, []string{"examples"}) || slices.Contains(strings.Split(name, "/"), "internal") {
			continue
		}
		found[name] = true
		if tiers[name] == "" {
			findings = append(findings, s.path+": docs/stability.md does not name the tier of package "+name)
		} else if !strings.Contains(strings.ReplaceAll(s.file.Doc.Text(), "\n", " "), tierSentences[tiers[name]]) {
			findings = append(findings, s.path+": the tier in the package comment is not "+tiers[name]+", which docs/stability.md says")
		}
	}
	for name := range tiers {
		if !found[name] {
			findings = append(findings, "docs/stability.md: there is no package "+name)
		}
	}
	slices.Sort(findings)
	return findings
}

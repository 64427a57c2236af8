// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/skills"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// skillFiles are the files of three skills: one with every kind of front matter, one with
// unusual file names, and one in a subdirectory.
var skillFiles = map[string]string{
	"refunds/SKILL.md": "---\nname: refunds\ndescription: |\n  How to refund.\n  Ask first.\nlicense: MIT\nallowed-tools: Read Write\n" +
		"metadata: {version: \"1.0\", since: 2026-07-28, yes: yes}\ncount: 3\nratio: 0.50\nbig: 1e3\nyes: yes\non: true\nnothing: null\nodd: [014, 1_000, 0b11, 0o14, 0x1F, 0X1F, 1__0, .5, 1., +1, -0, 0.50, TRUE, tRue, 1:30, 2026-07-28, =, 1e3, Null, nULL]\nlist: [a, 1, ~]\ndeep: {a: {b: [c]}}\n" +
		"---\n\n# Refunds\n\nSee [fees](references/fees.md).\n",
	"refunds/references/fees.md":      "# Fees\n",
	"letters/SKILL.md":                "---\r\nname: letters\r\ndescription: \"Write letters: caf\\u00e9, \\\"quoted\\\"\"\r\n---\r\nDear reader\r\n",
	"letters/logo.png":                "\x89PNG\r\n\x1a\n\x00\xff",
	"letters/empty.txt":               "",
	"letters/a b+c&d.md":              "spaces and signs",
	"letters/caf\u00e9/na\u00efve.md": "two names",
	"letters/100%/#1?.md":             "signs of URIs",
	"letters/deep/er/still.md":        "deep",
	"acme/billing/SKILL.md":           "---\nname: billing\ndescription: Bills.\n---\n",
	"acme/billing/data.json":          `{"a":1}`,
}

// skillDirectory returns a directory that contains skillFiles.
func skillDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range skillFiles {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// entries returns psi's catalog of a directory, and its skills by URI.
func entries(t *testing.T, dir string) (*skills.Catalog, map[string]*skills.Skill) {
	t.Helper()
	catalog, err := skills.New(os.DirFS(dir), &skills.Options{Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	byURI := map[string]*skills.Skill{}
	for _, skill := range catalog.Skills() {
		byURI[skill.URI] = skill
	}
	return catalog, byURI
}

// The official TypeScript SDK loads the skills of psi, verifies every file and reads every
// directory.
func TestSkillsToTypeScript(t *testing.T) {
	catalog, want := entries(t, skillDirectory(t))
	mux := mcp.NewMux("skills", "v1", &mcp.MuxOptions{Logger: logger(t)})
	catalog.Register(mux)
	url := serve(t, mcphttp.NewHandler(mux, &mcphttp.Options{Logger: logger(t)}))
	for _, era := range []string{"auto", "legacy"} {
		cmd := node(t, "skills.mjs", "load", url, era)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", era, err, &stderr)
		}
		var loaded []struct {
			Entry       *skills.Skill
			Files       map[string][]byte
			Directories map[string][]string
		}
		if err := json.Unmarshal(out, &loaded); err != nil {
			t.Fatalf("%s: %v in %s", era, err, out)
		}
		files, found := 0, 0
		for _, l := range loaded {
			if skill := want[l.Entry.URI]; skill == nil || skill.Digest() != l.Entry.Digest() {
				t.Errorf("%s: got the entry %+v", era, l.Entry)
			}
			for _, data := range l.Files {
				files++
				if !slices.Contains(slices.Collect(maps.Values(skillFiles)), string(data)) {
					t.Errorf("%s: got the file %q", era, data)
				}
			}
			for _, children := range l.Directories {
				for _, uri := range children {
					if _, isFile := l.Files[uri]; isFile {
						found++
					}
				}
			}
		}
		if len(loaded) != len(want) || files != len(skillFiles) || found != len(skillFiles) {
			t.Errorf("%s: %d skills with %d files, %d of them in directories; want %d with %d", era, len(loaded), files, found, len(want), len(skillFiles))
		}
	}
}

// psi loads the skills of the official TypeScript SDK, whose entries equal those that psi
// creates for the same directory.
func TestSkillsOfTypeScript(t *testing.T) {
	dir := skillDirectory(t)
	_, want := entries(t, dir)
	for _, version := range []string{mcp.LatestVersion, "2025-11-25"} {
		client := mcp.NewClient("psi", "v1", &mcp.ClientOptions{Version: version, Logger: logger(t)})
		c, err := client.Connect(limited(t), mcpstdio.NewCommand(node(t, "skills.mjs", "serve", dir), &mcpstdio.CommandOptions{Logger: logger(t)}))
		if err != nil {
			t.Fatal(err)
		}
		files, found, listed := 0, 0, 0
		for skill, err := range skills.List(t.Context(), c) {
			if err != nil {
				t.Fatalf("%s: %v", version, err)
			}
			listed++
			if own := want[skill.URI]; own == nil || own.Digest() != skill.Digest() {
				t.Errorf("%s: got the entry %+v, want %+v", version, skill, own)
			}
			files += loadAll(t, c, skill)
			found += readAll(t, c, strings.TrimSuffix(skill.URI, "/SKILL.md"))
		}
		if listed != len(want) || files != len(skillFiles) || found != len(skillFiles) {
			t.Errorf("%s: %d skills with %d files, %d of them in directories; want %d with %d", version, listed, files, found, len(want), len(skillFiles))
		}
		if _, err := skills.Get(t.Context(), c, "skill://unknown/SKILL.md"); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("%s: an unknown skill: %v", version, err)
		}
		_ = c.Close()
	}
}

// loadAll reads all files of a skill and returns their number.
func loadAll(t *testing.T, c *mcp.Conn, skill *skills.Skill) (files int) {
	t.Helper()
	loaded, err := skills.Load(t.Context(), c, skill, nil)
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSuffix(strings.TrimPrefix(skill.URI, "skill://"), "/SKILL.md")
	err = fs.WalkDir(loaded.FS(t.Context()), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := loaded.ReadFile(t.Context(), name)
		if want, ok := skillFiles[root+"/"+name]; !ok || string(data) != want {
			return errors.Join(err, errors.New(name+" is another file"))
		}
		return err
	})
	if err != nil {
		t.Errorf("%s: %v", skill.URI, err)
	}
	changed := *skill
	changed.Frontmatter = maps.Clone(skill.Frontmatter)
	changed.Frontmatter["description"] = json.RawMessage(`"another one"`)
	if _, err := skills.Load(t.Context(), c, &changed, nil); err == nil {
		t.Errorf("%s: loaded with other front matter", skill.URI)
	}
	return files
}

// readAll reads a directory recursively and returns the number of files.
func readAll(t *testing.T, c *mcp.Conn, uri string) (files int) {
	t.Helper()
	for r, err := range skills.ReadDirectory(t.Context(), c, uri) {
		switch {
		case err != nil:
			t.Fatalf("%s: %v", uri, err)
		case r.MIMEType == "inode/directory":
			files += readAll(t, c, r.URI)
		default:
			files++
		}
	}
	return files
}

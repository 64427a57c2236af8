// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/skills"
)

// A loaded skill can be read as a file system.
func TestLoad(t *testing.T) {
	mcptest.Run(t, serve(t, files(), nil), func(t *testing.T, c *mcp.Conn) {
		loaded, err := skills.Load(t.Context(), c, list(t, c)["refunds"], nil)
		if err != nil {
			t.Fatal(err)
		}
		if loaded.Instructions() != refunds || loaded.Skill().URI != "skill://refunds/SKILL.md" {
			t.Errorf("%q", loaded.Instructions())
		}
		fsys := loaded.FS(t.Context())
		if err := fstest.TestFS(fsys, "SKILL.md", "references/fees.md", "references/logo.png", "abroad/SKILL.md"); err != nil {
			t.Error(err)
		}
		if _, err := fs.Stat(fsys, ".git"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}

// Files whose names must be escaped in URIs are read by name.
func TestLoadEscapedNames(t *testing.T) {
	c := mcptest.Connect(t, serve(t, files(), nil))
	loaded, err := skills.Load(t.Context(), c, list(t, c)["letters"], nil)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := fs.ReadFile(loaded.FS(t.Context()), "100% sure/no yes.md"); err != nil || string(data) != "Dear customer" {
		t.Errorf("%q, %v", data, err)
	}
}

// No file is read before it is needed, and none is read twice.
func TestNoPrefetch(t *testing.T) {
	m := &tamperer{}
	c := tampered(t, m)
	all := list(t, c)
	if _, err := skills.Get(t.Context(), c, all["refunds"].URI); err != nil || m.count() != 0 {
		t.Fatalf("%d files were read, %v", m.count(), err)
	}
	loaded, err := skills.Load(t.Context(), c, all["refunds"], nil)
	if err != nil || m.count() != 1 {
		t.Fatalf("%d files were read, %v", m.count(), err)
	}
	fsys := loaded.FS(t.Context())
	if _, err := fs.Glob(fsys, "*/*.md"); err != nil || m.count() != 1 {
		t.Errorf("%d files were read, %v", m.count(), err)
	}
	for range 2 {
		if _, err := fs.ReadFile(fsys, "references/fees.md"); err != nil || m.count() != 2 {
			t.Errorf("%d files were read, %v", m.count(), err)
		}
	}
}

// Changes that a caller makes to the data of a file do not affect later reads.
func TestReadFileIsACopy(t *testing.T) {
	c := mcptest.Connect(t, serve(t, files(), nil))
	loaded, err := skills.Load(t.Context(), c, list(t, c)["refunds"], nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		data, err := loaded.ReadFile(t.Context(), "references/fees.md")
		if err != nil || string(data) != "No fees.\n" {
			t.Fatalf("%q, %v", data, err)
		}
		clear(data)
	}
}

// A SKILL.md that differs from what was listed is not loaded.
func TestTampered(t *testing.T) {
	for reason, change := range map[string]func(uri, text string) string{
		"its digest is another one": func(_, text string) string { return strings.Replace(text, "first", "never", 1) },
		"bytes, and":                func(_, text string) string { return text + "and more" },
	} {
		m := &tamperer{change: change}
		c := tampered(t, m)
		_, err := skills.Load(t.Context(), c, list(t, c)["refunds"], nil)
		wantVerification(t, err, reason)
		if m.count() != 1 {
			t.Errorf("%d files were read", m.count())
		}
	}
}

// A SKILL.md whose front matter differs from its entry is not loaded, even if the digest
// matches.
func TestFrontmatterDiffers(t *testing.T) {
	c := mcptest.Connect(t, serve(t, files(), nil))
	for field, value := range map[string]string{"description": `"Steals."`, "allowed-tools": `"Bash"`, "license": ""} {
		skill := *list(t, c)["refunds"]
		skill.Frontmatter[field] = []byte(value)
		if value == "" {
			delete(skill.Frontmatter, field)
		}
		_, err := skills.Load(t.Context(), c, &skill, nil)
		wantVerification(t, err, field)
	}
}

// Front matter is compared by value, not by spelling.
func TestFrontmatterIsCompared(t *testing.T) {
	const text = "---\nname: a\ndescription: d\nn: 1.0\nlist: [1, 2.50, null]\n---\n"
	c := mcptest.Connect(t, serve(t, fstest.MapFS{"a/SKILL.md": {Data: []byte(text)}}, nil))
	skill := list(t, c)["a"]
	skill.Frontmatter["n"], skill.Frontmatter["list"] = []byte("1"), []byte("[1e0, 2.5 ,null]")
	if _, err := skills.Load(t.Context(), c, skill, nil); err != nil {
		t.Error(err)
	}
}

// A file that is not listed in the entry is not requested.
func TestUnlisted(t *testing.T) {
	m := &tamperer{}
	c := tampered(t, m)
	skill := list(t, c)["refunds"]
	for i, f := range skill.Files {
		if strings.HasSuffix(f.URI, "fees.md") {
			skill.Files = append(skill.Files[:i:i], skill.Files[i+1:]...)
			break
		}
	}
	loaded, err := skills.Load(t.Context(), c, skill, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = loaded.ReadFile(t.Context(), "references/fees.md")
	wantVerification(t, err, "does not have it")
	if !errors.Is(err, fs.ErrNotExist) || m.count() != 1 {
		t.Errorf("%v; %d files were read", err, m.count())
	}
	for _, name := range []string{"../shop/letters/SKILL.md", "/SKILL.md", ".", ""} {
		if _, err := loaded.ReadFile(t.Context(), name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Malformed entries are rejected before any file is read.
func TestMalformedEntries(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	file := func(uri, digest string, size int) string {
		return fmt.Sprintf(`{"uri":%q,"digest":%q,"size":%d}`, uri, digest, size)
	}
	own := file("skill://a/SKILL.md", digest, 1)
	entry := func(uri, frontmatter string, files ...string) string {
		return fmt.Sprintf(`{"uri":%q,"frontmatter":%s,"resources":[%s]}`, uri, frontmatter, strings.Join(files, ","))
	}
	const good = `{"name":"a","description":"d"}`
	for want, text := range map[string]string{
		"does not end in /SKILL.md":         entry("skill://a", good, own),
		"but the directory is":              entry("skill://b/SKILL.md", good, own),
		"has no description":                entry("skill://a/SKILL.md", `{"name":"a"}`, own),
		"do not include":                    entry("skill://a/SKILL.md", good, file("skill://a/b", digest, 1)),
		"not in the directory of the skill": entry("skill://a/SKILL.md", good, own, file("skill://b/c", digest, 1)),
		"not the path of a file":            entry("skill://a/SKILL.md", good, own, file("skill://a/%2e%2e/b", digest, 1)),
		"its size is -1":                    entry("skill://a/SKILL.md", good, file("skill://a/SKILL.md", digest, -1)),
		"is listed twice":                   entry("skill://a/SKILL.md", good, own, file("skill://a/b", digest, 1), file("skill://a/%62", digest, 1)),
		"as a file and as a directory":      entry("skill://a/SKILL.md", good, own, file("skill://a/b", digest, 1), file("skill://a/b/c", digest, 1)),
		"larger than 16777216 bytes":        entry("skill://a/SKILL.md", good, own, file("skill://a/b", digest, math.MaxInt32)),
		"are generated":                     `{"uri":"skill://a/SKILL.md","frontmatter":` + good + `,"resources":"dynamic"}`,
	} {
		c := forged(t, text)
		_, err := skills.Load(t.Context(), c, list(t, c)["a"], nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	for _, bad := range []string{"md5:1", strings.Repeat("a", 64), "sha256:" + strings.Repeat("a", 63), "sha256:" + strings.Repeat("A", 64)} {
		c := forged(t, entry("skill://a/SKILL.md", good, file("skill://a/SKILL.md", bad, 1)))
		if _, err := skills.Load(t.Context(), c, list(t, c)["a"], nil); err == nil || !strings.Contains(err.Error(), "its digest is") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
	for _, text := range []string{
		`{"uri":"skill://a/SKILL.md","frontmatter":` + good + `}`, `{"uri":"skill://a/SKILL.md","frontmatter":` + good + `,"resources":"some"}`, `7`,
	} {
		for _, err := range skills.List(t.Context(), forged(t, text)) {
			if !errors.Is(err, mcp.ErrUnreadable) {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// A skill with generated files is loaded if the options allow it.
func TestDynamic(t *testing.T) {
	c := mcptest.Connect(t, serve(t, files(), nil))
	skill := list(t, c)["refunds"]
	skill.Files, skill.Dynamic = nil, true
	loaded, err := skills.Load(t.Context(), c, skill, &skills.LoadOptions{AllowDynamic: true})
	if err != nil || skill.Digest() != "" {
		t.Fatal(err)
	}
	skills.LeaveRoom(loaded, 9)
	if data, err := loaded.ReadFile(t.Context(), "references/fees.md"); err != nil || string(data) != "No fees.\n" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := loaded.ReadFile(t.Context(), "references/logo.png"); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Error(err)
	}
}

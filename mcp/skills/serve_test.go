// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/skills"
)

// Every client can list skills, get one, and read every file.
func TestServed(t *testing.T) {
	mcptest.Run(t, serve(t, files(), nil), func(t *testing.T, c *mcp.Conn) {
		all := list(t, c)
		if got := names(all); got != "abroad letters refunds" {
			t.Fatal(got)
		}
		s, err := skills.Get(t.Context(), c, "skill://refunds/SKILL.md")
		if err != nil || s.Digest() != all["refunds"].Digest() || len(s.Files) != 4 {
			t.Fatalf("%+v, %v", s, err)
		}
		var metadata map[string]string
		if !s.Frontmatter.Get("metadata", &metadata) || metadata["reviewed"] != "2026-03-01" || metadata["version"] != "1.0" {
			t.Errorf("%s", s.Frontmatter["metadata"])
		}
		for _, skill := range all {
			for _, f := range skill.Files {
				res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: f.URI})
				if err != nil || int64(len(res.Contents[0].Text)+len(res.Contents[0].Blob)) != f.Size {
					t.Errorf("%s: %+v, %v", f.URI, res, err)
				}
			}
		}
		_, err = skills.Get(t.Context(), c, "skill://refunds/references/fees.md")
		if mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Error(err)
		}
	})
}

// Registering skills logs no warnings.
func TestNoWarnings(t *testing.T) {
	var logged strings.Builder
	mux := mcp.NewMux("shop", "v1.0.0", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	catalog(t, files(), nil).Register(mux)
	if logged.Len() > 0 {
		t.Error(logged.String())
	}
}

// SKILL.md is listed as a resource, with the name and description of the skill.
func TestListedResources(t *testing.T) {
	mcptest.Run(t, serve(t, files(), nil), func(t *testing.T, c *mcp.Conn) {
		var got []string
		for r, err := range c.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.URI+" "+r.Name+" "+r.MIMEType)
		}
		want := []string{
			"skill://refunds/SKILL.md refunds text/markdown", "skill://refunds/abroad/SKILL.md abroad text/markdown",
			"skill://shop/letters/SKILL.md letters text/markdown",
		}
		if !slices.Equal(got, want) {
			t.Error(got)
		}
	})
}

// The extension is declared by the mux on which the skills are registered. A parent mux
// serves the files but not the methods, and does not declare the extension.
func TestDeclared(t *testing.T) {
	mux := serve(t, files(), nil)
	gateway := mcp.NewMux("gateway", "v1.0.0", nil)
	gateway.Mount("shop_", mux)
	for h, want := range map[*mcp.Mux]string{mux: `{"directoryRead":true}`, gateway: ""} {
		mcptest.Run(t, h, func(t *testing.T, c *mcp.Conn) {
			if got := string(c.Server().Capabilities.Extensions[skills.Extension]); got != want {
				t.Errorf("declared %q, want %q", got, want)
			}
		})
	}
	for _, err := range skills.List(t.Context(), mcptest.Connect(t, gateway)) {
		if err != skills.ErrNotSupported { //nolint:errorlint // it is returned as it is
			t.Error(err)
		}
	}
	res, err := mcptest.Connect(t, gateway).ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mount:shop_:skill://refunds/references/fees.md"})
	if err != nil || res.Contents[0].Text != "No fees.\n" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestReadDirectory(t *testing.T) {
	h := serve(t, files(), nil)
	for uri, want := range map[string][]string{
		"skill://refunds": {
			"skill://refunds/SKILL.md refunds text/markdown", "skill://refunds/abroad abroad inode/directory",
			"skill://refunds/references references inode/directory",
		},
		"skill://refunds/references": {
			"skill://refunds/references/fees.md fees.md text/markdown", "skill://refunds/references/logo.png logo.png image/png",
		},
		"skill://shop":                       {"skill://shop/letters letters inode/directory"},
		"skill://shop/letters/100%25%20sure": {"skill://shop/letters/100%25%20sure/no%20yes.md no yes.md text/markdown"},
	} {
		if got, err := readDirectory(t, h, uri); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", uri, got, err)
		}
	}
	for _, uri := range []string{"skill://refunds/", "skill://refunds/SKILL.md", "skill://", "skill:", "", "skill://refunds/.git", "skill://nothing"} {
		if _, err := readDirectory(t, h, uri); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

// lister serves the list of skills without declaring that directories can be read.
type lister struct{ mcp.Handler }

func (lister) Extension() (string, json.RawMessage) { return skills.Extension, json.RawMessage("{}") }

// ReadDirectory returns ErrNotSupported for a server that cannot read directories, and its
// iteration can be stopped early.
func TestReadDirectoryClient(t *testing.T) {
	mux := mcp.NewMux("lister", "v1.0.0", nil)
	mux.Handle(skills.MethodList, lister{mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return &skills.ListResult{}, nil })})
	for _, err := range skills.List(t.Context(), mcptest.Connect(t, mux)) {
		t.Error(err)
	}
	if _, err := readDirectory(t, mux, "skill://a"); !errors.Is(err, skills.ErrNotSupported) {
		t.Error(err)
	}
	for r, err := range skills.ReadDirectory(t.Context(), mcptest.Connect(t, serve(t, files(), nil)), "skill://refunds") {
		if err != nil || r.Name != "refunds" {
			t.Errorf("%+v, %v", r, err)
		}
		break
	}
}

// The results of all methods have cache hints, which the official TypeScript SDK requires
// for directories, too.
func TestCacheHints(t *testing.T) {
	h := serve(t, files(), &skills.Options{Cache: mcp.CacheFor(time.Minute, mcp.CachePublic)})
	for method, params := range map[string]any{
		skills.MethodList:          nil,
		skills.MethodGet:           &skills.GetParams{URI: "skill://refunds/SKILL.md"},
		skills.MethodReadDirectory: &skills.ReadDirectoryParams{URI: "skill://refunds"},
	} {
		res, _, err := mcptest.Do(t, h, mcptest.NewRequest(method, params))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(res); err != nil || !strings.Contains(string(text), `"ttlMs":60000,"cacheScope":"public"`) {
			t.Errorf("%s: got %s, %v", method, text, err)
		}
	}
}

// The prefix is part of every URI, and the directories of the prefix can be read.
func TestPrefix(t *testing.T) {
	h := serve(t, files(), &skills.Options{Prefix: "acme/billing"})
	if _, err := skills.Get(t.Context(), mcptest.Connect(t, h), "skill://acme/billing/refunds/SKILL.md"); err != nil {
		t.Error(err)
	}
	for uri, want := range map[string]string{
		"skill://acme":         "skill://acme/billing billing inode/directory",
		"skill://acme/billing": "skill://acme/billing/refunds refunds inode/directory",
	} {
		if got, err := readDirectory(t, h, uri); err != nil || !slices.Contains(got, want) {
			t.Errorf("%s: %q, %v", uri, got, err)
		}
	}
	for _, prefix := range []string{"/acme", "acme/", "a b", "../up", ".", "a%20b"} {
		if _, err := skills.New(files(), &skills.Options{Prefix: prefix}); err == nil || !strings.Contains(err.Error(), "Options.Prefix") {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

func TestPages(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range 10 {
		fsys[fmt.Sprintf("s%d/SKILL.md", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "---\nname: s%d\ndescription: d\n---\n", i)}
		fsys[fmt.Sprintf("s0/%d.md", i)] = &fstest.MapFile{}
	}
	for _, size := range []int{1, 3, 10, 11} {
		h := serve(t, fsys, &skills.Options{PageSize: size})
		if got := len(list(t, mcptest.Connect(t, h))); got != 10 {
			t.Errorf("pages of %d: %d skills", size, got)
		}
		if got, err := readDirectory(t, h, "skill://s0"); len(got) != 11 || err != nil {
			t.Errorf("pages of %d: %d files, %v", size, len(got), err)
		}
	}
	none := "zzz"
	res, _, err := mcptest.Do(t, serve(t, fsys, nil), mcptest.NewRequest(skills.MethodList, &mcp.ListParams{Cursor: &none}))
	if mcp.CodeOf(err) != mcp.CodeInvalidParams {
		t.Errorf("%+v, %v", res, err)
	}
}

// A directory with mistakes is rejected, and the error lists all of them.
func TestMistakes(t *testing.T) {
	const good = "---\nname: a\ndescription: d\n---\n"
	many, large := fstest.MapFS{"a/SKILL.md": {Data: []byte(good)}}, fstest.MapFS{"a/SKILL.md": {Data: []byte(good)}}
	for i := range skills.MaxFiles {
		many[fmt.Sprintf("a/%d", i)] = &fstest.MapFile{}
	}
	for i := range 2 {
		large[fmt.Sprintf("a/%d", i)] = &fstest.MapFile{Data: make([]byte, skills.MaxBytes/2)}
	}
	text := func(text string) fstest.MapFS { return fstest.MapFS{"a/SKILL.md": {Data: []byte(text)}} }
	for want, fsys := range map[string]fstest.MapFS{
		"a/SKILL.md: there is no front matter":      text("# Title\n"),
		"has no end":                                text("---\nname: a\n"),
		"the front matter is not YAML":              text("---\nname: [a\n---\n"),
		"has no fields":                             text("---\n- a\n---\n"),
		"has no name":                               text("---\ndescription: d\n---\n"),
		"has no description":                        text("---\nname: a\ndescription: ' '\n---\n"),
		"the description has 1025 characters":       text("---\nname: a\ndescription: " + strings.Repeat("ä", 1025) + "\n---\n"),
		`the name is "b", but the directory is "a"`: text("---\nname: b\ndescription: d\n---\n"),
		`the name "A" is not one of a skill`:        text("---\nname: A\ndescription: d\n---\n"),
		`the name "a--b" is not one of a skill`:     text("---\nname: a--b\ndescription: d\n---\n"),
		"metadata must have texts as values":        text("---\nname: a\ndescription: d\nmetadata: {version: 1.0}\n---\n"),
		"compatibility must be a text of 1 to 500":  text("---\nname: a\ndescription: d\ncompatibility: [linux]\n---\n"),
		"a/SKILL.md: it is not valid UTF-8":         text(good + "caf\xe9"),
		"is reserved":                               text("---\nname: a\ndescription: d\nmetadata: {io.modelcontextprotocol/x: y}\n---\n"),
		"must be in a directory":                    {"SKILL.md": {Data: []byte(good)}},
		"more than 512 files":                       many,
		"larger than 16777216 bytes":                large,
		`the name "a" is already used by skill://a`: {"a/SKILL.md": {Data: []byte(good)}, "b/a/SKILL.md": {Data: []byte(good)}},
		"b/SKILL.md: there is no front matter":      {"a/SKILL.md": {Data: []byte("bad")}, "b/SKILL.md": {Data: []byte("bad")}},
	} {
		if _, err := skills.New(fsys, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := skills.New(nil, nil); err == nil {
		t.Error("a nil file system is accepted")
	}
}

// Invalid skills are left out and named by the error; the others are served.
func TestFindingR6InvalidSkillsAreLeftOut(t *testing.T) {
	fsys := files()
	fsys["seo/SKILL.md"] = &fstest.MapFile{Data: []byte("---\nname: SEO Optimizer\ndescription: d\n---\n")}
	fsys["z/refunds/SKILL.md"] = &fstest.MapFile{Data: []byte(refunds)}
	catalog, err := skills.New(fsys, nil)
	if catalog == nil {
		t.Fatal(err)
	}
	for _, want := range []string{`seo/SKILL.md: the name "SEO Optimizer"`, `z/refunds/SKILL.md: the name "refunds" is already used by skill://refunds/SKILL.md`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one that names %s", err, want)
		}
	}
	mux := mcp.NewMux("m", "v1", nil)
	catalog.Register(mux)
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := names(list(t, c)); got != "abroad letters refunds" {
			t.Errorf("the skills are %s", got)
		}
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "skill://seo/SKILL.md"}); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("an invalid skill: %v", err)
		}
	})
	delete(fsys, "seo/SKILL.md")
	delete(fsys, "z/refunds/SKILL.md")
	if err := catalog.Reload(); err != nil {
		t.Error(err)
	}
}

// Skills exactly at the limits are served.
func TestLimits(t *testing.T) {
	const manual = "---\nname: a\ndescription: d\n---\n"
	fsys := fstest.MapFS{"a/SKILL.md": {Data: []byte(manual)}, "a/large": {Data: make([]byte, skills.MaxBytes-len(manual))}}
	for i := range skills.MaxFiles - 2 {
		fsys[fmt.Sprintf("a/%d", i)] = &fstest.MapFile{}
	}
	s, err := skills.Get(t.Context(), mcptest.Connect(t, serve(t, fsys, nil)), "skill://a/SKILL.md")
	if err != nil || s.Validate() != nil || len(s.Files) != skills.MaxFiles {
		t.Errorf("%v, %v", err, s.Validate())
	}
}

// Registering skills twice panics with a message that names both places.
func TestRegisterTwice(t *testing.T) {
	mux := serve(t, files(), nil)
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "kit_test.go") || !strings.Contains(text, "serve_test.go") {
			t.Error(text)
		}
	}()
	catalog(t, fstest.MapFS{}, nil).Register(mux)
}

// Changes to the directory are detected when requests arrive, and are announced.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := files()
		h := serve(t, fsys, nil)
		c := mcptest.Connect(t, h)
		changed := make(chan mcp.Change, 10)
		sub, err := c.Listen(t.Context(), mcp.SubscriptionFilter{
			ResourcesListChanged: true, ResourceSubscriptions: []string{"skill://refunds/references/fees.md"},
		}, func(c mcp.Change) { changed <- c })
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		before := list(t, c)["refunds"].Digest()

		fsys["refunds/references/fees.md"] = &fstest.MapFile{Data: []byte("Ten percent.\n")}
		if list(t, c)["refunds"].Digest() != before {
			t.Error("the directory was looked at again within a second")
		}
		<-time.After(time.Second)
		if list(t, c)["refunds"].Digest() == before {
			t.Error("the change was not found")
		}
		if got := eventually(t, changed); got.URI != "skill://refunds/references/fees.md" {
			t.Errorf("%+v", got)
		}

		fsys["new/SKILL.md"] = &fstest.MapFile{Data: []byte("---\nname: new\ndescription: n\n---\n")}
		delete(fsys, "shop/letters/SKILL.md")
		<-time.After(time.Second)
		if got := names(list(t, c)); got != "abroad new refunds" {
			t.Error(got)
		}
		if got := eventually(t, changed); got.Method != mcp.NotificationResourcesListChanged {
			t.Errorf("%+v", got)
		}
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "skill://shop/letters/100%25%20sure/no%20yes.md"}); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Error(err)
		}
	})
}

// Watch announces changes even if no requests arrive.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := files()
		mux := mcp.NewMux("shop", "v1.0.0", nil)
		catalog := catalog(t, fsys, &skills.Options{Refresh: -1})
		catalog.Register(mux)
		changed := make(chan mcp.Change, 10)
		sub, err := mcptest.Connect(t, mux).Listen(t.Context(), mcp.SubscriptionFilter{ResourcesListChanged: true}, func(c mcp.Change) { changed <- c })
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		fsys["refunds/SKILL.md"] = &fstest.MapFile{Data: []byte(strings.Replace(refunds, "Decides", "Ponders", 1)), ModTime: time.Unix(1, 0)}
		go catalog.Watch(ctx, time.Minute)
		if got := eventually(t, changed); got.Method != mcp.NotificationResourcesListChanged {
			t.Errorf("%+v", got)
		}
	})
}

// A change that leaves no trace in the directory is detected when the file is read: the
// content sent always matches the current entry.
func TestChangeWithoutATrace(t *testing.T) {
	fsys := files()
	h := serve(t, fsys, &skills.Options{Refresh: -1})
	c := mcptest.Connect(t, h)
	old := list(t, c)["refunds"]
	fsys["refunds/references/fees.md"] = &fstest.MapFile{Data: []byte("No bees.\n")}
	loaded, err := skills.Load(t.Context(), c, old, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = loaded.ReadFile(t.Context(), "references/fees.md")
	wantVerification(t, err, "its digest is another one")

	present, err := skills.Get(t.Context(), c, old.URI)
	if err != nil || present.Digest() == old.Digest() {
		t.Fatal(err)
	}
	if loaded, err = skills.Load(t.Context(), c, present, nil); err != nil {
		t.Fatal(err)
	}
	if data, err := loaded.ReadFile(t.Context(), "references/fees.md"); err != nil || string(data) != "No bees.\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// While a skill is invalid, the others are served.
func TestInvalidChange(t *testing.T) {
	fsys := files()
	var logged strings.Builder
	opts := &skills.Options{Refresh: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	c := mcptest.Connect(t, serve(t, fsys, opts))
	fsys["refunds/SKILL.md"] = &fstest.MapFile{Data: []byte("half of it")}
	for range 3 {
		if got := names(list(t, c)); got != "abroad letters" {
			t.Fatal(got)
		}
	}
	if n := strings.Count(logged.String(), "there is no front matter"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &logged)
	}
	if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "skill://refunds/SKILL.md"}); mcp.CodeOf(err) != mcp.CodeInvalidParams {
		t.Error(err)
	}
	fsys["refunds/SKILL.md"] = &fstest.MapFile{Data: []byte(strings.Replace(refunds, "MIT", "ISC", 1)), ModTime: time.Unix(1, 0)}
	if got := string(list(t, c)["refunds"].Frontmatter["license"]); got != `"ISC"` {
		t.Error(got)
	}
}

// Invalid params are errors of the caller.
func TestBadParams(t *testing.T) {
	h := serve(t, files(), nil)
	for _, method := range []string{skills.MethodReadDirectory, skills.MethodList} {
		_, _, err := mcptest.Do(t, h, mcptest.NewRequest(method, json.RawMessage(`{"cursor":2}`)))
		if mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

const filesTemplate = "file:///docs/{+path}"

func serveFiles(h mcp.Handler, template string) *mcp.Mux {
	mux := mcp.NewMux("files", "v1.0.0", nil)
	mux.Resource(template, h)
	return mux
}

func readURI(t *testing.T, h mcp.Handler, uri string) (*mcp.ResourceContents, error) {
	t.Helper()
	res, _, err := mcptest.Do(t, h, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri}))
	if err != nil {
		return nil, err
	}
	contents := res.(*mcp.ReadResourceResult).Contents
	if len(contents) != 1 || contents[0].URI != uri {
		t.Fatalf("reading %q: contents %+v", uri, contents)
	}
	return contents[0], nil
}

func listPage(t *testing.T, h mcp.Handler, cursor *string) *mcp.ListResourcesResult {
	t.Helper()
	res, _, err := mcptest.Do(t, h, mcptest.NewRequest(mcp.MethodListResources, &mcp.ListParams{Cursor: cursor}))
	if err != nil {
		t.Fatalf("listing: %v", err)
	}
	return res.(*mcp.ListResourcesResult)
}

// listPages lists all pages, up to a limit that endless lists exceed.
func listPages(t *testing.T, h mcp.Handler) (all []*mcp.Resource, sizes []int) {
	t.Helper()
	var cursor *string
	for range 1000 {
		page := listPage(t, h, cursor)
		all = append(all, page.Resources...)
		sizes = append(sizes, len(page.Resources))
		if cursor = page.NextCursor; cursor == nil {
			return all, sizes
		}
	}
	t.Fatal("the list does not end")
	return nil, nil
}

func namesOf(resources []*mcp.Resource) []string {
	var names []string
	for _, r := range resources {
		names = append(names, r.Name)
	}
	return names
}

func isNotFound(err error, uri string) bool {
	want := mcp.NewResourceNotFoundError(uri)
	var got *mcp.Error
	if e, ok := err.(*mcp.Error); ok { //nolint:errorlint // it must be the error itself
		got = e
	}
	return got != nil && got.Code == want.Code && got.Message == want.Message && bytes.Equal(got.Data, want.Data)
}

func TestFileServerReads(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00"
	tests := []struct{ name, uri, data, kind, text string }{
		{"readme.md", "file:///docs/readme.md", "# Hi", "text/markdown", "# Hi"},
		{"a/b/c.json", "file:///docs/a/b/c.json", "{}", "application/json", "{}"},
		{"UPPER.TXT", "file:///docs/UPPER.TXT", "x", "text/plain", "x"},
		{"empty.txt", "file:///docs/empty.txt", "", "text/plain", ""},
		{"Makefile", "file:///docs/Makefile", "all:\n", "text/plain", "all:\n"},
		{"grüße & co.txt", "file:///docs/gr%C3%BC%C3%9Fe%20&%20co.txt", "ü", "text/plain", "ü"},
		{"what?#.txt", "file:///docs/what%3F%23.txt", "x", "text/plain", "x"},
		{"50%25.txt", "file:///docs/50%2525.txt", "x", "text/plain", "x"},
		{"a:b", "file:///docs/a:b", "x", "text/plain", "x"},
		{"latin1.txt", "file:///docs/latin1.txt", "gr\xfc\xdfe", "text/plain", ""},
		{"nul.txt", "file:///docs/nul.txt", "a\x00b", "text/plain", ""},
		{"pixel.png", "file:///docs/pixel.png", png, "image/png", ""},
		{"plain.png", "file:///docs/plain.png", "no picture", "image/png", ""},
		{"logo.svg", "file:///docs/logo.svg", "<svg/>", "image/svg+xml", "<svg/>"},
		{"image", "file:///docs/image", png, "image/png", ""},
		{"data", "file:///docs/data", "\x01\x02\xff", "application/octet-stream", ""},
	}
	files := fstest.MapFS{}
	for _, test := range tests {
		files[test.name] = &fstest.MapFile{Data: []byte(test.data)}
	}
	mux := serveFiles(mcp.FileServerFS(files, nil), filesTemplate)
	listed, _ := listPages(t, mux)
	if len(listed) != len(tests) {
		t.Errorf("listed %d files, want %d: %q", len(listed), len(tests), namesOf(listed))
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := readURI(t, mux, test.uri)
			if err != nil {
				t.Fatal(err)
			}
			if c.MIMEType != test.kind || c.Text != test.text {
				t.Errorf("got %q %q, want %q %q", c.MIMEType, c.Text, test.kind, test.text)
			}
			if wantBlob := test.text == "" && test.data != ""; wantBlob != (c.Blob != nil) || wantBlob && string(c.Blob) != test.data {
				t.Errorf("blob is %q", c.Blob)
			}
			i := slices.IndexFunc(listed, func(r *mcp.Resource) bool { return r.Name == test.name })
			if i < 0 {
				t.Fatal("not listed")
			}
			if r := listed[i]; r.URI != test.uri || r.MIMEType != test.kind || *r.Size != int64(len(test.data)) {
				t.Errorf("listed as %q, %q, %d bytes", r.URI, r.MIMEType, *r.Size)
			}
		})
	}
}

func TestFileServerDirectories(t *testing.T) {
	mux := serveFiles(mcp.FileServerFS(fstest.MapFS{
		"b.txt": {}, "a b.txt": {}, "c:d": {}, "sub/x.txt": {}, "sub/deep/y.txt": {}, ".hidden/z.txt": {},
	}, nil), filesTemplate)
	for uri, want := range map[string]string{
		"file:///docs/":         "a%20b.txt\nb.txt\n./c:d\nsub/\n",
		"file:///docs/sub":      "deep/\nx.txt\n",
		"file:///docs/sub/":     "deep/\nx.txt\n",
		"file:///docs/sub/deep": "y.txt\n",
	} {
		c, err := readURI(t, mux, uri)
		if err != nil || c.Text != want || c.MIMEType != "inode/directory" {
			t.Errorf("%s: got %+v, %v; want %q", uri, c, err, want)
		}
	}
}

func TestFileServerHidden(t *testing.T) {
	mux := serveFiles(mcp.FileServerFS(fstest.MapFS{".env": {Data: []byte("x")}, ".git/config": {}, "a": {}}, &mcp.FileServerOptions{Hidden: true}), filesTemplate)
	listed, _ := listPages(t, mux)
	if got, want := namesOf(listed), []string{".env", ".git/config", "a"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	if _, err := readURI(t, mux, "file:///docs/.git/config"); err != nil {
		t.Error(err)
	}
	if _, err := readURI(t, mux, "file:///docs/.git/../.env"); !isNotFound(err, "file:///docs/.git/../.env") {
		t.Error(err)
	}
}

// endless is a file system whose files are longer than their size says.
type endless struct{ fs.FS }

func (e endless) Open(name string) (fs.File, error) {
	f, err := e.FS.Open(name)
	if name == "." {
		return f, err
	}
	return endlessFile{f}, err
}

type endlessFile struct{ fs.File }

func (endlessFile) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// FileServerOptions.Resource describes the template of a file server.
func TestFileServerDescription(t *testing.T) {
	mux := serveFiles(mcp.FileServerFS(fstest.MapFS{}, &mcp.FileServerOptions{Resource: &mcp.Resource{Name: "docs", Description: "the documents"}}), filesTemplate)
	list, err := mcptest.Connect(t, mux).ListResourceTemplates(t.Context(), nil)
	if err != nil || len(list.ResourceTemplates) != 1 || list.ResourceTemplates[0].Name != "docs" || list.ResourceTemplates[0].Description != "the documents" {
		t.Errorf("got %+v, %v", list, err)
	}
}

// If its directory does not exist, a file server does not report individual files as
// missing, and listing its files logs the problem.
func TestFileServerWithoutRoot(t *testing.T) {
	var logged bytes.Buffer
	mux := mcp.NewMux("files", "v1.0.0", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	mux.Resource(filesTemplate, mcp.FileServerFS(os.DirFS(filepath.Join(t.TempDir(), "none")), nil))
	for _, uri := range []string{"file:///docs/", "file:///docs/a.txt", "file:///docs/a/b.txt"} {
		_, err := readURI(t, mux, uri)
		if mcp.CodeOf(err) != mcp.CodeInternalError || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading %s: %v", uri, err)
		}
	}
	if page := listPage(t, mux, nil); len(page.Resources) != 0 || !strings.Contains(logged.String(), "a part is missing from a list") {
		t.Errorf("listed %v, logged %s", page.Resources, &logged)
	}
}

func TestFileServerMaxBytes(t *testing.T) {
	files := fstest.MapFS{"fits.txt": {Data: make([]byte, 10)}, "large.txt": {Data: make([]byte, 11)}}
	mux := serveFiles(mcp.FileServerFS(files, &mcp.FileServerOptions{MaxBytes: 10}), filesTemplate)
	if _, err := readURI(t, mux, "file:///docs/fits.txt"); err != nil {
		t.Error(err)
	}
	mustBeTooLarge := func(mux *mcp.Mux, uri string) {
		t.Helper()
		if _, err := readURI(t, mux, uri); mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), "larger than 10 bytes") {
			t.Errorf("%s: %v", uri, err)
		}
	}
	mustBeTooLarge(mux, "file:///docs/large.txt")
	if listed, _ := listPages(t, mux); len(listed) != 2 {
		t.Errorf("listed %q", namesOf(listed))
	}
	grown := serveFiles(mcp.FileServerFS(endless{files}, &mcp.FileServerOptions{MaxBytes: 10}), filesTemplate)
	mustBeTooLarge(grown, "file:///docs/fits.txt")
}

func TestFileServerPages(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 25 {
		for _, name := range []string{"%02d.txt", "a/%02d", "a/b/%02d", "a-b/%02d", "a.b/%02d", ".x/%02d"} {
			files[fmt.Sprintf(name, i)] = &fstest.MapFile{}
		}
	}
	var want []string
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, _ error) error {
		if !d.IsDir() && !strings.HasPrefix(name, ".") {
			want = append(want, name)
		}
		return nil
	})
	for _, size := range []int{1, 2, 7, 25, 1000} {
		mux := serveFiles(mcp.LimitPages(mcp.FileServerFS(files, nil), size), filesTemplate)
		listed, sizes := listPages(t, mux)
		if got := namesOf(listed); !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %q, want %q", size, got, want)
		}
		if slices.Max(sizes) > size || len(sizes) > len(want)/size+2 {
			t.Errorf("pages of %d have the sizes %d", size, sizes)
		}
	}
}

// Files that are added or removed between two pages neither repeat nor hide others.
func TestFileServerPagesWhileChanging(t *testing.T) {
	files := fstest.MapFS{"b/1": {}, "b/2": {}, "d": {}, "e": {}}
	mux := serveFiles(mcp.LimitPages(mcp.FileServerFS(files, nil), 2), filesTemplate)
	page := listPage(t, mux, nil)
	delete(files, "b/1")
	delete(files, "b/2") // the file that the cursor names
	files["a"], files["b/3"], files["c/1"] = &fstest.MapFile{}, &fstest.MapFile{}, &fstest.MapFile{}
	var rest []string
	for page.NextCursor != nil {
		page = listPage(t, mux, page.NextCursor)
		rest = append(rest, namesOf(page.Resources)...)
	}
	if want := []string{"b/3", "c/1", "d", "e"}; !slices.Equal(rest, want) {
		t.Errorf("the rest is %q, want %q", rest, want)
	}
}

func TestFileServerCursors(t *testing.T) {
	h := mcp.FileServerFS(fstest.MapFS{"a": {}, "sub/b": {}, "z": {}}, nil)
	for cursor, want := range map[string]int{
		"a": 2, "sub": 2, "sub/b": 1, "sub/b/c": 1, "sub/zzz": 1, "nowhere/at/all": 2, "zz": 0, ".": 3, ".hidden": 3,
		"": -1, "..": -1, "../x": -1, "/": -1, "/etc": -1, "sub/../..": -1, "a//b": -1, "\xff": -1,
		strings.Repeat("sub/", 2000) + "x": 1,
	} {
		page, err := mcp.ListFiles(t.Context(), h, filesTemplate, &cursor)
		switch {
		case want < 0 && mcp.CodeOf(err) != mcp.CodeInvalidParams:
			t.Errorf("cursor %.40q: %v", cursor, err)
		case want >= 0 && (err != nil || len(page.Resources) != want):
			t.Errorf("cursor %.40q: %q, %v; want %d files", cursor, namesOf(page.Resources), err, want)
		}
	}
}

// huge is a directory with too many entries to read.
type huge struct{ fs.FS }

func (h huge) Open(name string) (fs.File, error) {
	f, err := h.FS.Open(name)
	if name == "huge" && err == nil {
		return &hugeDir{ReadDirFile: f.(fs.ReadDirFile)}, nil
	}
	return f, err
}

type hugeDir struct {
	fs.ReadDirFile
	read int
}

func (d *hugeDir) ReadDir(n int) ([]fs.DirEntry, error) {
	entries := make([]fs.DirEntry, n)
	for i := range entries {
		d.read++
		f, _ := fstest.MapFS{"x": {}}.Stat("x")
		entries[i] = fs.FileInfoToDirEntry(f)
	}
	if d.read > 100_000 {
		panic("that is unbounded")
	}
	return entries, nil
}

func TestFileServerBoundsDirectories(t *testing.T) {
	mux := serveFiles(mcp.FileServerFS(huge{fstest.MapFS{"a": {}, "huge/x": {}, "z": {}}}, nil), filesTemplate)
	listed, _ := listPages(t, mux)
	if got, want := namesOf(listed), []string{"a", "z"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	if _, err := readURI(t, mux, "file:///docs/huge"); mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), "65536 entries") {
		t.Error(err)
	}
	if _, err := readURI(t, mux, "file:///docs/huge/x"); err != nil {
		t.Error(err)
	}
}

// barren is a file system whose directories are full of hidden files.
type barren struct {
	fs.FS
	hidden []fs.DirEntry
}

func (b barren) Open(name string) (fs.File, error) {
	if name == "." {
		return b.FS.Open(name)
	}
	return &barrenDir{entries: b.hidden}, nil
}

type barrenDir struct {
	fs.File
	entries []fs.DirEntry
}

func (*barrenDir) Close() error { return nil }

func (*barrenDir) Stat() (fs.FileInfo, error) { return fstest.MapFS{}.Stat(".") }

func (d *barrenDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if len(d.entries) == 0 {
		return nil, io.EOF
	}
	some := d.entries[:min(n, len(d.entries))]
	d.entries = d.entries[len(some):]
	return some, nil
}

// Directories full of files that are not listed make pages shorter, instead of requests
// longer.
func TestFileServerBoundsPages(t *testing.T) {
	one, err := fstest.MapFS{".x": {}}.Stat(".x")
	if err != nil {
		t.Fatal(err)
	}
	files := barren{fstest.MapFS{"last.txt": {}}, slices.Repeat([]fs.DirEntry{fs.FileInfoToDirEntry(one)}, 40_000)}
	for i := range 5 {
		files.FS.(fstest.MapFS)[fmt.Sprint(i)] = &fstest.MapFile{Mode: fs.ModeDir}
	}
	listed, sizes := listPages(t, serveFiles(mcp.FileServerFS(files, nil), filesTemplate))
	if len(listed) != 1 || len(sizes) < 3 || len(sizes) > 6 {
		t.Errorf("listed %q on pages of %d", namesOf(listed), sizes)
	}
}

//go:embed fileserver_test.go
var embedded embed.FS

func TestFileServerTimes(t *testing.T) {
	modified := time.Date(2026, 7, 28, 12, 30, 0, 5, time.FixedZone("", 7200))
	listed, _ := listPages(t, serveFiles(mcp.FileServerFS(fstest.MapFS{"a.txt": {ModTime: modified}}, nil), filesTemplate))
	raw, err := json.Marshal(listed[0].Annotations)
	if err != nil || string(raw) != `{"lastModified":"2026-07-28T10:30:00Z"}` {
		t.Errorf("annotations are %s, %v", raw, err)
	}
	listed, _ = listPages(t, serveFiles(mcp.FileServerFS(embedded, nil), filesTemplate))
	if len(listed) != 1 || listed[0].Annotations != nil {
		t.Errorf("an embedded file has no time, but was listed as %+v", listed[0])
	}
}

func TestFileServerWithinRoots(t *testing.T) {
	files := fstest.MapFS{"home/u/proj/a.txt": {Data: []byte("x")}, "home/u/project2/b.txt": {}, "home/u/proj?x": {}, "etc/passwd": {}}
	opts := &mcp.FileServerOptions{WithinRoots: true}
	mux := serveFiles(mcp.FileServerFS(files, opts), "file:///{+path}")
	var roots []mcp.Root
	answerRoots := func(mcp.Handler) mcp.Handler { // including URIs that a client may not have
		return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return &mcp.ListRootsResult{Roots: roots}, nil
		})
	}
	client := &mcptest.Client{Options: mcp.ClientOptions{Roots: []mcp.Root{}, AnswerMiddleware: []mcp.Middleware{answerRoots}}}
	conn := client.Connect(t, mux)
	for _, test := range []struct {
		root, uri string
		ok        bool
	}{
		{"file:///home/u/proj", "file:///home/u/proj/a.txt", true},
		{"file:///home/u/proj/", "file:///home/u/proj/a.txt", true},
		{"file://localhost/home/u/proj", "file:///home/u/proj/a.txt", true},
		{"file:///home/u/../u/proj", "file:///home/u/proj/a.txt", true},
		{"file:///home/u/proj/a.txt", "file:///home/u/proj/a.txt", true},
		{"file:///", "file:///etc/passwd", true},
		{"file:///home/u/proj", "file:///home/u/proj", true},
		{"file:///home/u/proj", "file:///home/u/project2/b.txt", false},
		{"file:///home/u/proj", "file:///home/u/proj?x", false},
		{"file:///home/u/proj", "file:///home/u/proj%3Fx", false},
		{"file:///home/u/proj", "file:///home/u", false},
		{"file:///home/u/proj", "file:///etc/passwd", false},
		{"file://elsewhere/etc", "file:///etc/passwd", false},
		{"https:///etc", "file:///etc/passwd", false},
		{"file:etc", "file:///etc/passwd", false},
		{"", "file:///etc/passwd", false},
		{"%zz", "file:///etc/passwd", false},
	} {
		roots = []mcp.Root{{URI: test.root}}
		_, err := conn.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: test.uri})
		if ok := err == nil; ok != test.ok || !ok && !isNotFound(err, test.uri) {
			t.Errorf("%s within %s: %v", test.uri, test.root, err)
		}
	}
	if listed, _ := listPages(t, mux); len(listed) != 0 {
		t.Errorf("listed %q", namesOf(listed))
	}
	_, err := mcptest.Connect(t, mux).ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///etc/passwd"})
	if mcp.CodeOf(err) != mcp.CodeMissingCapability {
		t.Errorf("a client without roots got %v", err)
	}
}

func TestFileServerCompletes(t *testing.T) {
	mux := serveFiles(mcp.FileServerFS(fstest.MapFS{"guide/a.md": {}, "guide/b.md": {}, "go.mod": {}, ".git/x": {}}, nil), filesTemplate)
	for typed, want := range map[string][]string{
		"": {"go.mod", "guide/"}, "g": {"go.mod", "guide/"}, "gui": {"guide/"}, "guide/": {"guide/a.md", "guide/b.md"},
		"guide/b": {"guide/b.md"}, "../": nil, "/": nil, ".git/": nil, "go.mod/": nil, "nowhere/": nil, "x": nil,
	} {
		res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{
			Ref: mcp.CompleteRef{Type: "ref/resource", URI: filesTemplate}, Argument: mcp.CompleteArgument{Name: "path", Value: typed},
		}))
		if err != nil {
			t.Fatal(err)
		}
		if got := res.(*mcp.CompleteResult).Completion.Values; !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}

// A file server completes paths unless it has its own completers or serves within the
// client's roots, which it cannot ask for during a completion.
func TestFileServerCompleters(t *testing.T) {
	files := fstest.MapFS{"a.md": {}}
	own := &mcp.Resource{Completers: map[string]mcp.Completer{"path": mcp.CompleteFrom("own")}}
	for _, test := range []struct {
		opts mcp.FileServerOptions
		want []string
	}{
		{mcp.FileServerOptions{}, []string{"a.md"}},
		{mcp.FileServerOptions{Resource: own}, []string{"own"}},
		{mcp.FileServerOptions{WithinRoots: true}, nil},
	} {
		mux := serveFiles(mcp.FileServerFS(files, &test.opts), filesTemplate)
		res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{
			Ref: mcp.CompleteRef{Type: "ref/resource", URI: filesTemplate}, Argument: mcp.CompleteArgument{Name: "path"},
		}))
		if err != nil || !slices.Equal(res.(*mcp.CompleteResult).Completion.Values, test.want) {
			t.Errorf("%+v: got %+v, %v, want %q", test.opts, res, err, test.want)
		}
	}
}

func TestFileServerTemplates(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"file:///docs/{+path}": true, "docs:{+path}": true, "file:///docs/{+path}.md": true, "x:/{path}": false,
		"file:///docs": false, "file:///{user}/{+path}": false, "file:///docs/{+name}": false, "file:///docs{?path}": false, "file:///docs{/path*}": false,
	} {
		func() {
			defer func() {
				v := recover()
				if (v == nil) != ok || v != nil && !strings.Contains(fmt.Sprint(v), "fileserver_test.go:") {
					t.Errorf("%s: %v", pattern, v)
				}
			}()
			serveFiles(mcp.FileServerFS(fstest.MapFS{}, nil), pattern)
		}()
	}
}

func TestFileServerCache(t *testing.T) {
	opts := &mcp.FileServerOptions{Cache: mcp.CacheFor(time.Minute, mcp.CachePublic)}
	mux := mcp.NewMux("files", "v1.0.0", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Hour, mcp.CachePublic)})
	mux.Resource(filesTemplate, mcp.FileServerFS(fstest.MapFS{"a": {}}, opts))
	if page := listPage(t, mux, nil); *page.TTLMs != 60_000 || page.CacheScope != mcp.CachePublic {
		t.Errorf("hints are %+v", page.Cacheable)
	}
}

// unreadable is a file system with a file that exists but cannot be opened.
type unreadable struct{ fs.FS }

func (u unreadable) Open(name string) (fs.File, error) {
	if name == "a" {
		return nil, &fs.PathError{Op: "open", Path: "/srv/private/a", Err: fs.ErrPermission}
	}
	return u.FS.Open(name)
}

func (u unreadable) Stat(name string) (fs.FileInfo, error) { return fs.Stat(u.FS, name) }

func TestFileServerKeepsItsPathsToItself(t *testing.T) {
	mux := serveFiles(mcp.FileServerFS(unreadable{fstest.MapFS{"a": {}}}, nil), filesTemplate)
	_, err := readURI(t, mux, "file:///docs/a")
	e, ok := err.(*mcp.Error) //nolint:errorlint // as it is sent
	if !ok || e.Code != mcp.CodeInternalError || strings.Contains(e.Message, "srv") {
		t.Errorf("got %v", err)
	}
}

var errDisk = errors.New("the disk is broken")

// faultyFS is a file system in which one operation fails. It counts the open files.
type faultyFS struct {
	fs.FS
	left int // operations before the fault
	done bool
	open int
}

func (f *faultyFS) step() error {
	if f.left--; f.left == -1 {
		f.done = true
		return errDisk
	}
	return nil
}

func (f *faultyFS) Open(name string) (fs.File, error) {
	if err := f.step(); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	f.open++
	return &faultyFile{file.(fs.ReadDirFile), f}, nil
}

type faultyFile struct {
	fs.ReadDirFile
	of *faultyFS
}

func (f *faultyFile) Stat() (fs.FileInfo, error) {
	if err := f.of.step(); err != nil {
		return nil, err
	}
	return f.ReadDirFile.Stat()
}

func (f *faultyFile) Read(p []byte) (int, error) {
	if err := f.of.step(); err != nil {
		return 0, err
	}
	return f.ReadDirFile.Read(p)
}

func (f *faultyFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if err := f.of.step(); err != nil {
		return nil, err
	}
	return f.ReadDirFile.ReadDir(n)
}

func (f *faultyFile) Close() error { f.of.open--; return f.ReadDirFile.Close() }

// bothFS is an fstest file system whose files also have the methods of directories.
type bothFS struct{ fstest.MapFS }

func (b bothFS) Open(name string) (fs.File, error) {
	f, err := b.MapFS.Open(name)
	if d, ok := f.(fs.ReadDirFile); err != nil || ok {
		return d, err
	}
	return struct {
		fs.File
		noDir
	}{f, noDir{}}, nil
}

type noDir struct{}

func (noDir) ReadDir(int) ([]fs.DirEntry, error) { return nil, errors.New("no directory") }

// If an operation of the file system fails, the response reveals nothing more, and every
// file is closed.
func TestFileServerFaults(t *testing.T) {
	files := bothFS{fstest.MapFS{"a.txt": {Data: []byte("text")}, "sub/b.bin": {Data: []byte{0, 255}}, "sub/c/d.md": {Data: []byte("# d")}}}
	var text strings.Builder
	for _, s := range []sample{
		{mcp.MethodListResources, ``}, {mcp.MethodListResources, `"cursor":"none"`},
		{mcp.MethodReadResource, `"uri":"file:///docs/a.txt"`}, {mcp.MethodReadResource, `"uri":"file:///docs/sub"`}, {mcp.MethodReadResource, `"uri":"file:///docs/sub/"`},
		{mcp.MethodReadResource, `"uri":"file:///docs/"`}, {mcp.MethodReadResource, `"uri":"file:///docs/a.txt/"`}, {mcp.MethodReadResource, `"uri":"file:///docs/none"`},
		{mcp.MethodReadResource, `"uri":"file:///docs/../a.txt"`}, {mcp.MethodReadResource, `"uri":"file:///docs/%2e"`}, {mcp.MethodReadResource, `"uri":"file:///docs/sub%2fb.bin"`},
		{mcp.MethodComplete, `"ref":{"type":"ref/resource","uri":"file:///docs/{+path}"},"argument":{"name":"path","value":"s"}`},
		{mcp.MethodComplete, `"ref":{"type":"ref/resource","uri":"file:///docs/{+path}"},"argument":{"name":"path","value":"sub/c/"}`},
		{mcp.MethodListen, `"notifications":{"resourceSubscriptions":["file:///docs/a.txt","file:///docs/none","file:///docs/sub/","file:///docs/a.txt/"]}`},
	} {
		fmt.Fprintf(&text, "> %s %s\n", s.method, s.members)
		for left := range 100 {
			faulty := &faultyFS{FS: files, left: math.MaxInt}
			mux := mcp.NewMux("files", "v1", quiet())
			mux.Resource(filesTemplate, mcp.LimitPages(mcp.FileServerFS(faulty, nil), 2))
			faulty.left = left // registering looks at the directory, too
			ctx, cancel := context.WithCancel(t.Context())
			req := mcptest.NewRequest(s.method, json.RawMessage(s.params(eras[0].meta)))
			var acknowledged string
			res, err := core.Serve(ctx, mux, req, notifier(func(_ string, params json.RawMessage) { acknowledged = string(params); cancel() }), quiet().Logger)
			cancel()
			outcome := resultOf(res, err)
			if s.method == mcp.MethodListen {
				outcome, _, _ = strings.Cut(acknowledged, `,"_meta"`)
			}
			if strings.Contains(outcome, errDisk.Error()) && err != nil && mcp.CodeOf(err) != mcp.CodeInternalError {
				t.Errorf("%s %s: %v", s.method, s.members, err)
			}
			if faulty.open != 0 {
				t.Errorf("%s %s, operation %d: %d files are open", s.method, s.members, left, faulty.open)
			}
			if !faulty.done {
				fmt.Fprintf(&text, "  without a fault: %s\n", random.ReplaceAllString(outcome, `$1"..."`))
				break
			}
			fmt.Fprintf(&text, "  operation %d: %s\n", left, random.ReplaceAllString(outcome, `$1"..."`))
		}
	}
	golden.Check(t, "files", text.String())
}

// notifier is a function that receives notifications.
type notifier func(method string, params json.RawMessage)

// Notify implements serving.Notifier.
func (n notifier) Notify(_ context.Context, method string, params json.RawMessage) error {
	n(method, params)
	return nil
}

// The content of a file without a known extension determines its type. Text is sent as
// text, unless its type is never text.
func TestFileServerTypes(t *testing.T) {
	for _, c := range []struct {
		name, data, kind string
		isText           bool
	}{
		{"a", "\x89PNG\r\n\x1a\n", "image/png", false},
		{"a", "\xff\xd8\xff", "image/jpeg", false},
		{"a", "GIF89a", "image/gif", false},
		{"a", "%PDF-1.7", "application/pdf", false},
		{"a", "PK\x03\x04", "application/zip", false},
		{"a", "\x1f\x8b\x08", "application/gzip", false},
		{"a", "OggS", "application/ogg", false},
		{"a", "ID3", "audio/mpeg", false},
		{"a", "\x00asm", "application/wasm", false},
		{"a", "RIFF0000WEBP", "image/webp", false},
		{"a", "RIFF0000WEBPVP8 ", "image/webp", false},
		{"a", "RIFF0000WEB", "text/plain", true},
		{"a", "RIFF0000WAVE", "text/plain", true},
		{"a", "ABCD0000WEBP", "text/plain", true},
		{"a", "\x89PNG", "application/octet-stream", false},
		{"a", "hello", "text/plain", true},
		{"a", "hel\x00lo", "application/octet-stream", false},
		{"a", "hel\xfflo", "application/octet-stream", false},
		{"a.PNG", "text", "image/png", false},
		{"a.mp3", "text", "audio/mpeg", false},
		{"a.mp4", "text", "video/mp4", false},
		{"a.tar", "text", "application/x-tar", false},
		{"a.zip", "text", "application/zip", false},
		{"a.gz", "text", "application/gzip", false},
		{"a.pdf", "text", "application/pdf", false},
		{"a.wasm", "text", "application/wasm", false},
		{"a.svg", "<svg/>", "image/svg+xml", true},
		{"a.json", "{}", "application/json", true},
		{"a.go", "package a", "text/x-go", true},
		{"a.ts", "let a", "text/x-typescript", true},
		{"a.avif", "text", "image/avif", false},
		{"a.go", "\xff", "text/x-go", false},
	} {
		mux := serveFiles(mcp.FileServerFS(fstest.MapFS{c.name: {Data: []byte(c.data)}}, nil), filesTemplate)
		got, err := readURI(t, mux, "file:///docs/"+c.name)
		if err != nil || got.MIMEType != c.kind || (got.Blob == nil) != c.isText {
			t.Errorf("%s with %q: got %+v, %v", c.name, c.data, got, err)
		}
	}
}

// The type of a large file is guessed from its first 512 bytes. If they are text, the file
// is listed as text, even if they end in the middle of a character.
func TestFileServerGuessBounds(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		text bool
	}{
		"a character over the end":       {strings.Repeat("x", 511) + "üxxx", true},
		"a long character over the end":  {strings.Repeat("x", 509) + "😀xxx", true},
		"three of four bytes":            {strings.Repeat("x", 508) + "😀xxx", true},
		"half a character before it":     {strings.Repeat("x", 510) + "\xc3xxx", false},
		"binary after the first bytes":   {strings.Repeat("x", 512) + "\x00", true},
		"binary in the last of them":     {strings.Repeat("x", 511) + "\x00", false},
		"continuation bytes without any": {strings.Repeat("x", 500) + strings.Repeat("\x80", 20), false},
		"short text":                     {"ü", true},
		"half a character":               {"\xc3", false},
	} {
		mux := serveFiles(mcp.FileServerFS(fstest.MapFS{"a": {Data: []byte(c.data)}}, nil), filesTemplate)
		listed, _ := listPages(t, mux)
		if len(listed) != 1 || (listed[0].MIMEType == "text/plain") != c.text {
			t.Errorf("%s: listed %+v", name, listed)
		}
	}
}

// On Windows, short names can refer to files whose names begin with a dot, so they are
// hidden. Elsewhere, such names are ordinary.
func TestFileServerShortNames(t *testing.T) {
	mux := serveFiles(mcp.FileServerFS(fstest.MapFS{"GIT~1": {Data: []byte("x")}, "a~b": {Data: []byte("x")}}, nil), filesTemplate)
	for name, served := range map[string]bool{"GIT~1": runtime.GOOS != "windows", "a~b": true} {
		if _, err := readURI(t, mux, "file:///docs/"+name); (err == nil) != served {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FileServerFS panics without a file system.
func TestFileServerWithoutFiles(t *testing.T) {
	wantPanic(t, func() { mcp.FileServerFS(nil, nil) }, "FileServerFS at fileserver_test.go")
}

// openFS counts the open files.
type openFS struct {
	fs.FS
	open int
}

func (o *openFS) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	if err != nil {
		return nil, err
	}
	o.open++
	if d, ok := f.(fs.ReadDirFile); ok {
		return openDir{d, o}, nil
	}
	return openFile{f, o}, nil
}

type openFile struct {
	fs.File
	of *openFS
}

func (f openFile) Close() error { f.of.open--; return f.File.Close() }

type openDir struct {
	fs.ReadDirFile
	of *openFS
}

func (d openDir) Close() error { d.of.open--; return d.ReadDirFile.Close() }

// Whatever is requested from a file server, it closes every file it opens.
func TestFileServerClosesFiles(t *testing.T) {
	files := &openFS{FS: fstest.MapFS{"a": {Data: []byte("x")}, "large": {Data: make([]byte, 100)}, "dir/b.md": {}, "dir/sub/c": {}, ".hidden": {}}}
	mux := serveFiles(mcp.FileServerFS(files, &mcp.FileServerOptions{MaxBytes: 10}), filesTemplate)
	check := func(what string) {
		if files.open != 0 {
			t.Errorf("after %s, %d files are open", what, files.open)
			files.open = 0
		}
	}
	for _, path := range []string{"a", "large", "dir", "dir/", "dir/sub/", "dir/b.md", "", ".hidden", "none", "a/", "a/b", "dir/none"} {
		_, _, _ = mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "file:///docs/" + path}))
		check("reading " + path)
		_, _, _ = mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{
			Ref: mcp.CompleteRef{Type: "ref/resource", URI: filesTemplate}, Argument: mcp.CompleteArgument{Name: "path", Value: path},
		}))
		check("completing " + path)
	}
	if listed, _ := listPages(t, mux); len(listed) == 0 {
		t.Error("nothing is listed")
	}
	check("listing")
}

// A file whose name is not valid UTF-8 does not prevent completing the others.
func TestFileNamesThatAreNotText(t *testing.T) {
	files := fstest.MapFS{"a.txt": {Data: []byte("a")}, "b\xff.txt": {Data: []byte("b")}}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("file:///{+path}", mcp.FileServerFS(files, nil))
	c := mcptest.Connect(t, mux)
	res, err := c.Complete(t.Context(), &mcp.CompleteParams{
		Ref:      mcp.CompleteRef{Type: "ref/resource", URI: "file:///{+path}"},
		Argument: mcp.CompleteArgument{Name: "path"},
	})
	if err != nil || !slices.Equal(res.Completion.Values, []string{"a.txt"}) {
		t.Errorf("got %+v, %v", res, err)
	}
}

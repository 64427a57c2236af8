// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/go-psi/psi/internal/filetype"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp"
)

// Register registers the skills on a mux, or on a view of it, whose middleware then wraps
// them: the methods of the extension, which the mux then declares, and every file as a
// resource. resources/list contains the SKILL.md of each skill, with its name and
// description; the other files are found through the instructions. Register panics if one
// of these is already registered.
//
// A mux that mounts this one has the files but not the methods. If its clients should list
// the skills, register the catalog there as well.
func (c *Catalog) Register(mux *mcp.Mux) {
	c.mustBeMade()
	c.reloading.Lock()
	defer c.reloading.Unlock()
	err := mux.Update(func(m *mcp.Mux) {
		m.Handle(MethodList, c.method(c.list))
		m.Handle(MethodGet, c.method(c.get))
		m.Handle(MethodReadDirectory, c.method(c.readDirectory))
		c.changeResources(m, &snapshot{}, c.current.Load())
	})
	if err != nil {
		panic(err)
	}
	c.muxes = append(c.muxes, mux)
}

// changeResources removes the files of before that next does not list in the same way, and
// registers the files of next that before does not list in the same way. Each file is a
// resource like any other, so conflicts, middleware and subscriptions need nothing new; a
// template with a lister would not announce changes.
func (c *Catalog) changeResources(m *mcp.Mux, before, next *snapshot) {
	for uri, f := range before.files {
		if !f.isListedAs(next.files[uri]) {
			m.RemoveResource(uri)
		}
	}
	for uri, f := range next.files {
		if !f.isListedAs(before.files[uri]) {
			m.Resource(uri, c.resource(f))
		}
	}
}

// isListedAs reports whether other has the same description in lists.
func (f *file) isListedAs(other *file) bool {
	if other == nil || (f.of == nil) != (other.of == nil) {
		return false
	}
	return f.of == nil || f.Size == other.Size && f.of.Frontmatter.Description() == other.of.Frontmatter.Description()
}

// method is the handler of a method of the extension.
type method struct {
	mcp.HandlerFunc
}

func (c *Catalog) method(serve mcp.HandlerFunc) mcp.Handler { return method{serve} }

// Extension implements [mcp.ServerExtension].
func (method) Extension() (string, json.RawMessage) {
	return Extension, json.RawMessage(`{"directoryRead":true}`)
}

func (c *Catalog) list(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	var p mcp.ListParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.load(ctx).sorted, func(s *Skill) string { return s.URI }, p.Cursor, c.opts.PageSize)
	if err != nil {
		return nil, err
	}
	return &ListResult{Cacheable: c.opts.Cache, Page: mcp.Page{NextCursor: next}, Skills: page}, nil
}

// pageOf returns the page of a sorted list after a cursor. The cursor identifies the last
// item of the previous page, so items that are added or removed in between do not matter.
// It does not reveal the name of the item, because middleware may have hidden the item.
func pageOf[D any](sorted []D, name func(D) string, cursor *string, size int) (page []D, next *string, err error) {
	first := 0
	if cursor != nil {
		first = 1 + slices.IndexFunc(sorted, func(d D) bool { return digestOf([]byte(name(d))) == *cursor })
		if first == 0 {
			return nil, nil, mcp.Errorf(mcp.CodeInvalidParams, "params.cursor is not, or no longer, one of this list; start again without it")
		}
	}
	end := min(first+size, len(sorted))
	page = append([]D{}, sorted[first:end]...)
	if end < len(sorted) {
		next = new(digestOf([]byte(name(sorted[end-1]))))
	}
	return page, next, nil
}

func (c *Catalog) get(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	var p GetParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	skill := c.load(ctx).skills[uritemplate.Normal(p.URI)]
	if skill == nil {
		return nil, mcp.NewResourceNotFoundError(p.URI) // as for a skill that middleware hides
	}
	return &GetResult{Cacheable: c.opts.Cache, Skill: skill}, nil
}

func (c *Catalog) readDirectory(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	var p ReadDirectoryParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	s := c.load(ctx)
	children, ok := s.dirs[p.URI]
	switch {
	case s.files[p.URI] != nil:
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.uri: %q is a file, not a directory", p.URI)
	case !ok:
		return nil, mcp.NewResourceNotFoundError(p.URI)
	}
	page, next, err := pageOf(children, func(c child) string { return c.name }, p.Cursor, c.opts.PageSize)
	if err != nil {
		return nil, err
	}
	res := &ReadDirectoryResult{Cacheable: c.opts.Cache, Page: mcp.Page{NextCursor: next}, Resources: make([]*mcp.Resource, len(page))}
	for i, entry := range page {
		res.Resources[i] = entry.describe()
	}
	return res, nil
}

func (c child) describe() *mcp.Resource {
	if c.file == nil {
		return &mcp.Resource{URI: c.uri, Name: c.name, MIMEType: filetype.Directory}
	}
	r := c.file.describe()
	r.URI = c.uri
	if c.file.of == nil {
		r.Name = c.name
	}
	return r
}

// describe returns the list entry of a file, without its URI.
func (f *file) describe() *mcp.Resource {
	r := &mcp.Resource{MIMEType: f.kind, Size: &f.Size}
	if f.of != nil {
		r.Name, r.Description = f.of.Frontmatter.Name(), f.of.Frontmatter.Description()
	}
	return r
}

// fileHandler is the handler of a file.
type fileHandler struct {
	catalog *Catalog
	uri     string
}

// manifestHandler is the handler of a SKILL.md, which is listed.
type manifestHandler struct {
	fileHandler

	resource *mcp.Resource
}

func (l manifestHandler) Describe() mcp.Description { return l.resource }

func (c *Catalog) resource(f *file) mcp.Handler {
	if f.of == nil {
		return mcp.WithDescription(fileHandler{c, f.URI}, nil) // it is not listed
	}
	return manifestHandler{fileHandler{c, f.URI}, f.describe()}
}

// ServeMCP serves resources/read. The response always matches the entries: if the file has
// changed, the directory is read again first.
func (s fileHandler) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	c := s.catalog
	snap := c.load(ctx)
	part, err := snap.read(c.fsys, s.uri)
	if err != nil {
		if err = c.reloadAfter(snap); err == nil {
			part, err = c.current.Load().read(c.fsys, s.uri)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, mcp.NewResourceNotFoundError(req.Name())
	case err != nil:
		return nil, errInvalid(s.uri, err)
	}
	return &mcp.ReadResourceResult{Cacheable: c.opts.Cache, Contents: []*mcp.ResourceContents{part}}, nil
}

// read reads a file if it matches its entry. The digest decides, not the time of the file.
// Keeping the contents would be simpler, but take 16 MiB for each skill.
func (s *snapshot) read(fsys fs.FS, uri string) (*mcp.ResourceContents, error) {
	f := s.files[uri]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	data, err := readFile(fsys, f.path)
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) != f.Size || digestOf(data) != f.Digest:
		return nil, fmt.Errorf("%s has changed", f.path)
	}
	return f.contents(data), nil
}

// errInvalid returns the error for a file that does not match its entry. It does not reveal
// paths on the server to the peer.
func errInvalid(uri string, err error) error {
	return &mcp.Error{Code: mcp.CodeInternalError, Message: "the skill of " + uri + " has changed and is not valid at the moment; try again later", Cause: err}
}

func (f *file) contents(data []byte) *mcp.ResourceContents {
	part := &mcp.ResourceContents{URI: f.URI, MIMEType: f.kind}
	if filetype.IsText(f.kind, data) {
		part.Text = string(data)
	} else {
		part.Blob = append([]byte{}, data...)
	}
	return part
}

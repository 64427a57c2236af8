// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package apps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// A Document is a page that a host has read.
type Document struct {
	URI    string
	HTML   string
	Digest string // of HTML: "sha256:" and 64 hexadecimal digits
	Meta   PageMeta
}

// A PageError means that a resource is not a page that a host may show.
type PageError struct {
	URI    string
	Reason string
	Err    error // may be nil
}

func (e *PageError) Error() string {
	return fmt.Sprintf("apps: the page %.200q is not shown: %s", e.URI, e.Reason)
}

// Unwrap returns e.Err.
func (e *PageError) Unwrap() error { return e.Err }

// Read reads a page. The metadata is taken from the contents of the resource or, if they
// have none, from its entry in the list of resources. Read returns a [*PageError] if the
// URI does not begin with ui://, if the resource is not HTML with the right MIME type, or
// if its metadata is malformed.
func Read(ctx context.Context, c *mcp.Conn, uri string) (*Document, error) {
	send := func(ctx context.Context, req *mcp.Request) (mcp.Result, error) { return core.Send(ctx, c, req) }
	return read(ctx, mcp.HandlerFunc(send), uri)
}

var core = mcp.Internal(seam.Key{})

func read(ctx context.Context, h mcp.Handler, uri string) (*Document, error) {
	if !isPageURI(uri) {
		return nil, &PageError{uri, "its URI does not begin with " + scheme, nil}
	}
	req, err := mcp.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	req.ID = mcp.IntID(1)
	res, err := h.ServeMCP(ctx, req)
	if err != nil {
		return nil, err
	}
	read, ok := res.(*mcp.ReadResourceResult)
	if !ok || len(read.Contents) != 1 || read.Contents[0] == nil {
		return nil, &PageError{uri, "the server has not sent one text", nil}
	}
	part := read.Contents[0]
	d := &Document{URI: uri, HTML: part.Text}
	if part.Blob != nil {
		d.HTML = string(part.Blob)
	}
	d.Digest = digestOf(d.HTML)
	if err := d.check(part.MIMEType); err != nil {
		return nil, err
	}
	meta, ok := part.Meta[metaUI]
	if !ok {
		if meta, err = listedMeta(ctx, h, uri); err != nil {
			return nil, err
		}
	}
	return d, d.setMeta(meta)
}

// check returns an error if the text is not a page.
func (d *Document) check(kind string) error {
	switch {
	case !isMIMEType(kind):
		return &PageError{d.URI, fmt.Sprintf("its MIME type is %.100q, not %s", kind, MIMEType), nil}
	case len(d.HTML) > maxPage:
		return &PageError{d.URI, fmt.Sprintf("it has %d bytes, and the limit is %d", len(d.HTML), maxPage), nil}
	case !utf8.ValidString(d.HTML):
		return &PageError{d.URI, "it is not valid UTF-8", nil}
	case !isDocument(d.HTML):
		return &PageError{d.URI, "it does not begin with <!doctype html>", nil}
	}
	return nil
}

// isMIMEType reports whether kind is the MIME type of pages, ignoring case, spaces and
// quotes.
func isMIMEType(kind string) bool {
	kind = strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(kind), " ", ""), `"`, "")
	return kind == MIMEType
}

func (d *Document) setMeta(raw []byte) error {
	if raw == nil {
		return nil
	}
	err := strictjson.Unmarshal(raw, &d.Meta)
	if err == nil && d.Meta.CSP != nil {
		err = d.Meta.CSP.Validate()
	}
	if err != nil {
		return &PageError{d.URI, "its _meta.ui: " + err.Error(), err}
	}
	return nil
}

// listedMeta returns the member ui of the _meta in the list of resources, or nil if there
// is none.
func listedMeta(ctx context.Context, h mcp.Handler, uri string) ([]byte, error) {
	var p mcp.ListParams
	for range maxPages {
		req, err := mcp.NewRequest(mcp.MethodListResources, &p)
		if err != nil {
			return nil, err
		}
		req.ID = mcp.IntID(1)
		res, err := h.ServeMCP(ctx, req)
		if mcp.CodeOf(err) == mcp.CodeMethodNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		list, ok := res.(*mcp.ListResourcesResult)
		if !ok {
			return nil, fmt.Errorf("apps: %s was answered with a %T", req.Method, res)
		}
		for _, r := range list.Resources {
			if r.URI == uri {
				return r.Meta[metaUI], nil
			}
		}
		if list.NextCursor == nil {
			return nil, nil
		}
		p.Cursor = list.NextCursor
	}
	return nil, nil
}

// Check reads the tools of a server, which is a mux or a connection, and returns all
// problems that hosts would find in its apps: malformed metadata, a page that does not
// exist or is not a page, and a tool for models without a description, which clients that
// show no pages could not use. Call it in a test.
func Check(ctx context.Context, server mcp.Handler) error {
	if server == nil {
		return errors.New("apps: Check: the server is nil")
	}
	req, err := mcp.NewRequest(mcp.MethodListTools, nil)
	if err != nil {
		return err
	}
	var problems []error
	pages := map[string]error{} // by URI
	p := &mcp.ListParams{}
	for range maxPages {
		list, err := listPage(AsApp(ctx), server, req, p)
		if err != nil {
			return err
		}
		for _, t := range list.Tools {
			problems = append(problems, checkTool(ctx, server, t, pages))
		}
		if p.Cursor = list.NextCursor; p.Cursor == nil {
			break
		}
	}
	return errors.Join(problems...)
}

func checkTool(ctx context.Context, server mcp.Handler, t *mcp.Tool, pages map[string]error) error {
	m, err := MetaOf(t)
	if err != nil || m == nil {
		return err
	}
	if m.IsFor(ForModel) && strings.TrimSpace(t.Description) == "" {
		err = fmt.Errorf("apps: the tool %q has no description, so a model can only guess what it does", t.Name)
	}
	uri := m.ResourceURI
	if uri == "" {
		return err
	}
	problem, known := pages[uri]
	if !known {
		_, problem = read(ctx, server, uri)
		pages[uri] = problem
	}
	if problem != nil {
		return errors.Join(err, fmt.Errorf("apps: the tool %q: its page %q: %w", t.Name, uri, problem))
	}
	return err
}

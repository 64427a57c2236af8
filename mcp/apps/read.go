// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package apps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// A Document is a page that a host has read.
type Document struct {
	URI    string
	HTML   string
	Digest string // of HTML: "sha256:" and 64 hexadecimal digits
	Meta   PageMeta
	// Warnings name the parts of the metadata that were left out because they are malformed,
	// such as a source in the CSP that is not an origin. The page then has fewer rights than
	// its author meant, never more.
	Warnings []string

	malformed []string // names of members that were left out
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

// Read reads a page. Each member of the metadata is taken from the contents of the resource,
// from the result that contains them or from its entry in the list of resources: the first
// that has it. Read returns a [*PageError] if the URI does not begin with ui:// or if the
// resource is not HTML with the right MIME type. Malformed metadata is left out; see
// [Document].Warnings.
func Read(ctx context.Context, c *mcp.Conn, uri string) (*Document, error) {
	return read(ctx, mcp.HandlerFunc(c.Do), uri)
}

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
	d.addMeta(part.Meta[metaUI])
	d.addMeta(read.Meta[metaUI])
	if d.Meta.CSP != nil {
		return d, nil // the list is long, and has nothing else that matters
	}
	listed, err := listedMeta(ctx, h, uri)
	if err != nil {
		return nil, err
	}
	d.addMeta(listed)
	return d, nil
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

// isMIMEType reports whether kind is the MIME type of pages, whatever its character set.
func isMIMEType(kind string) bool {
	text, params, err := mime.ParseMediaType(kind)
	return err == nil && text == "text/html" && strings.EqualFold(params["profile"], "mcp-app")
}

// addMeta adds the members of a _meta.ui that the document does not have yet.
func (d *Document) addMeta(raw []byte) {
	if raw == nil {
		return
	}
	all := readMember[mcp.Extra](d, "_meta.ui", raw)
	m := &d.Meta
	m.CSP = cmp.Or(m.CSP, d.readCSP(all["csp"]))
	m.Permissions = cmp.Or(m.Permissions, readMember[*Permissions](d, "permissions", all["permissions"]))
	m.Domain = cmp.Or(m.Domain, readMember[string](d, "domain", all["domain"]))
	m.PrefersBorder = cmp.Or(m.PrefersBorder, readMember[*bool](d, "prefersBorder", all["prefersBorder"]))
	m.Extra = mergeExtra(m.Extra, all, "csp", "permissions", "domain", "prefersBorder")
}

// readCSP reads a policy without the lists and sources that cannot be used.
func (d *Document) readCSP(raw []byte) *CSP {
	all := readMember[mcp.Extra](d, "csp", raw)
	if all == nil {
		return nil
	}
	c := &CSP{Extra: mergeExtra(nil, all, listNames...)}
	for _, name := range listNames {
		sources := readMember[[]string](d, "csp."+name, all[name])
		if len(sources) > maxSources {
			d.warnf("csp.%s has %d domains; those after the first %d are left out", name, len(sources), maxSources)
			sources = sources[:maxSources]
		}
		for i, s := range sources {
			if !isSource(s) {
				d.warnf("csp.%s[%d] is %.100q; it must be an origin such as https://api.example", name, i, s)
				continue
			}
			list := c.list(name)
			*list = append(*list, s)
		}
	}
	return c
}

// mergeExtra adds members to extra, but for those that it has and the known ones.
func mergeExtra(extra, members mcp.Extra, known ...string) mcp.Extra {
	for name, member := range members {
		if _, has := extra[name]; has || slices.Contains(known, name) {
			continue
		}
		if extra == nil {
			extra = mcp.Extra{}
		}
		extra[name] = member
	}
	return extra
}

// readMember decodes a member. It returns the zero value if there is none, and also warns if
// it is malformed. Nothing replaces a malformed member: what is found elsewhere may be the
// rights that the member was meant to withhold.
func readMember[T any](d *Document, name string, raw []byte) (v T) {
	if raw == nil || slices.Contains(d.malformed, name) {
		return v
	}
	if err := strictjson.Unmarshal(raw, &v); err != nil {
		d.warnf("%s: %s", name, strictjson.Problem(err))
		d.malformed = append(d.malformed, name)
		return *new(T)
	}
	return v
}

// maxWarnings bounds the number of warnings about one page.
const maxWarnings = 100

func (d *Document) warnf(format string, args ...any) {
	if len(d.Warnings) < maxWarnings {
		d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
	}
}

// maxPages limits the pages of a list that are read.
const maxPages = 100

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
	req.ID = mcp.IntID(1)
	var problems []error
	pages := map[string]error{} // by URI
	for t, err := range core.Tools(AsApp(ctx), server, req) {
		if err != nil {
			return err
		}
		problems = append(problems, checkTool(ctx, server, t, pages))
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
		problem = checkPage(ctx, server, uri)
		pages[uri] = problem
	}
	if problem != nil {
		return errors.Join(err, fmt.Errorf("apps: the tool %q: its page %q: %w", t.Name, uri, problem))
	}
	return err
}

// checkPage returns what is wrong with a page, its metadata included.
func checkPage(ctx context.Context, server mcp.Handler, uri string) error {
	d, err := read(ctx, server, uri)
	if err != nil || len(d.Warnings) == 0 {
		return err
	}
	return &PageError{uri, "its _meta.ui: " + strings.Join(d.Warnings, "; "), nil}
}

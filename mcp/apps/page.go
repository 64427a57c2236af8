// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package apps

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// Options configure [Page] and [Template]. Nil means the zero Options.
type Options struct {
	// Resource describes the page in lists. If it has no name, the name of the file or
	// template is used. Nil means the zero Resource.
	Resource *mcp.Resource
	// CSP lists the origins that the page uses.
	CSP *CSP
	// Permissions are the permissions that the page requests.
	Permissions Permissions
	// Domain requests a separate origin for the page. Its format depends on the host.
	Domain string
	// Border requests a border, or no border. Nil leaves the choice to the host.
	Border *bool
	// Assets holds the files that a [Template] refers to. The files of a [Page] are in its
	// own file system. Nil means no files.
	Assets fs.FS
	// Cache holds the cache hints of the page. The zero value means private and not to be
	// cached.
	Cache mcp.Cacheable
}

// maxPage bounds the size of a page, including inlined files, in bytes.
const maxPage = 16 << 20

// Page returns the handler of a page, which is an HTML file. Register it under a URI that
// begins with ui://:
//
//	mux.Resource("ui://airline/seats", apps.Page(files, "seats.html", nil))
//
// A page is a single text. Scripts, style sheets and images that it names by relative URLs
// are read from the file system and inlined. The origins of its absolute URLs must be in
// Options.CSP. In the place of the URL psi:app.js, a script of this package is inlined, which
// connects the page to its host:
//
//	<script src="psi:app.js"></script>
//	<script>app.ready({ result: (r) => { document.body.textContent = app.text(r); } });</script>
//
// The file is read once. Page panics if the file does not exist, does not begin with
// <!doctype html>, or refers to something that cannot be inlined and is not in the CSP, or
// if the CSP is malformed.
func Page(fsys fs.FS, name string, opts *Options) mcp.Handler {
	if fsys == nil {
		panic("apps.Page: the file system is nil")
	}
	p, o := newPage("Page", name, opts)
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		panic(fmt.Sprintf("apps.Page: %v", err))
	}
	text, err := (&inliner{fsys: fsys, dir: path.Dir(name), csp: o.CSP}).inline(data)
	if err != nil {
		panic(fmt.Sprintf("apps.Page: %s: %v", name, err))
	}
	p.render = func(context.Context) (string, error) { return text, nil }
	p.resource.Meta.Set(metaDigest, digestOf(text))
	return p
}

// Template returns the handler of a page that is generated whenever it is read: the
// template is executed with the value that data returns. If data is nil, the value is nil.
// Hosts may cache a page and show it again, so anything that depends on a call belongs in
// the result of the tool.
//
// Template panics if the template is nil or the CSP is malformed. If the generated text is
// invalid, the request fails.
func Template(t *template.Template, data func(ctx context.Context) (any, error), opts *Options) mcp.Handler {
	if t == nil {
		panic("apps.Template: the template is nil")
	}
	p, o := newPage("Template", t.Name(), opts)
	in := &inliner{fsys: o.Assets, dir: ".", csp: o.CSP}
	p.render = func(ctx context.Context) (string, error) {
		var value any
		if data != nil {
			var err error
			if value, err = data(ctx); err != nil {
				return "", err
			}
		}
		var text bytes.Buffer
		if err := t.Execute(&text, value); err != nil {
			return "", err
		}
		return in.inline(text.Bytes())
	}
	return p
}

// page is the handler of a page.
type page struct {
	resource mcp.Resource
	meta     PageMeta
	cache    mcp.Cacheable
	render   func(ctx context.Context) (string, error)
}

func newPage(function, name string, opts *Options) (*page, Options) {
	var o Options
	if opts != nil {
		o = *opts
	}
	p := &page{cache: o.Cache, meta: PageMeta{CSP: o.CSP, Domain: o.Domain, PrefersBorder: o.Border}}
	if o.Permissions != (Permissions{}) {
		p.meta.Permissions = &o.Permissions
	}
	if o.CSP != nil {
		if err := o.CSP.Validate(); err != nil {
			panic(fmt.Sprintf("apps.%s: %s: Options: %v", function, name, err))
		}
	}
	if o.Resource != nil {
		p.resource = *o.Resource
	}
	if p.resource.Name == "" {
		p.resource.Name = path.Base(name)
	}
	p.resource.MIMEType = MIMEType
	p.resource.Meta = maps.Clone(p.resource.Meta)
	p.resource.Meta.Set(metaUI, &p.meta)
	return p, o
}

// Describe implements [mcp.Describer].
func (p *page) Describe() mcp.Description { return &p.resource }

// Extension implements [mcp.ServerExtension].
func (p *page) Extension() (string, json.RawMessage) { return Extension, nil }

// ServeMCP serves resources/read.
func (p *page) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if uri := req.Name(); !isPageURI(uri) {
		return nil, mcp.Errorf(mcp.CodeInternalError, "the page is registered as %q, and hosts refuse pages whose URI does not begin with %s", uri, scheme)
	}
	text, err := p.render(ctx)
	if err != nil {
		return nil, fmt.Errorf("apps: %w", err)
	}
	part := &mcp.ResourceContents{URI: req.Name(), MIMEType: MIMEType, Text: text}
	part.Meta.Set(metaUI, &p.meta)
	part.Meta.Set(metaDigest, digestOf(text))
	return &mcp.ReadResourceResult{Cacheable: p.cache, Contents: []*mcp.ResourceContents{part}}, nil
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// isDocument reports whether a text begins like an HTML document.
func isDocument(text string) bool {
	const doctype = "<!doctype html"
	text = strings.TrimLeft(strings.TrimPrefix(text, "\ufeff"), " \t\r\n")
	for strings.HasPrefix(text, "<!--") {
		_, rest, closed := strings.Cut(text, "-->")
		if !closed {
			return false
		}
		text = strings.TrimLeft(rest, " \t\r\n")
	}
	return len(text) > len(doctype) && strings.EqualFold(text[:len(doctype)], doctype)
}

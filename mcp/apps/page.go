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
	// Resource describes the page in lists. Nil means the zero Resource, whose name is that
	// of the file or template.
	Resource *mcp.Resource
	// CSP lists the origins that the page uses.
	CSP *CSP
	// Permissions are what the page asks for.
	Permissions Permissions
	// Domain asks for an origin of its own, which depends on the host.
	Domain string
	// Border asks for a border, or for none. Nil leaves it to the host.
	Border *bool
	// Assets are the files that a [Template] refers to. Those of a [Page] are in its own
	// file system. Nil means none.
	Assets fs.FS
	// Cache holds the cache hints of the page. The zero value means private and not to be
	// kept.
	Cache mcp.Cacheable
}

// maxPage bounds the size of a page with what is inlined, in bytes.
const maxPage = 16 << 20

// Page returns the handler of a page: an HTML file. Register it under a URI that begins with
// ui://:
//
//	mux.Resource("ui://airline/seats", apps.Page(files, "seats.html", nil))
//
// A page is one text. Scripts, style sheets and images that it names by relative URLs are read
// from the file system, and become part of it. What it names by absolute URLs must be in
// Options.CSP.
//
// The file is read once. Page panics if the file does not exist, does not begin with
// <!doctype html>, or loads what it must not, and if the CSP is malformed.
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

// Template returns the handler of a page that is made anew whenever it is read: the template,
// executed with the value that data returns. Nil data means the value nil. Hosts may keep a
// page and show it again, so what depends on a call belongs into the result of the tool.
//
// Template panics if the template is nil, or the CSP is malformed. What is wrong with the text
// is the error of the request.
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

// isDocument reports whether a text begins as an HTML document does.
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

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/go-psi/psi/internal/uritemplate"
)

// A prefix renames the items of a mounted server. The inner name is the name at that server,
// the outer name the one at the mux. Results are shared with the mounted server, so they are
// copied and never modified.
//
// An outer URI contains the inner URI byte for byte, so that removing the prefix is exact. The
// URI of a page of MCP Apps must begin with ui://, or hosts reject it, so the prefix follows
// the scheme.
type prefix string

const (
	mountScheme = "mount:"
	pageScheme  = "ui://"       // of the URIs of MCP Apps pages
	mountPages  = "ui://mount/" // of the outer URIs of pages
)

// isValid reports whether all model providers accept the prefix in tool names.
func (p prefix) isValid() bool {
	return p != "" && len(p) <= 64 && strings.Trim(string(p), alphanumeric+"_-") == ""
}

// uris returns the prefix of outer URIs, and pages that of the outer URIs of pages. A prefix
// such as github_ cannot be part of a URI's scheme, so it follows a scheme of its own.
func (p prefix) uris() string  { return mountScheme + string(p) + ":" }
func (p prefix) pages() string { return mountPages + string(p) + "/" }

// outer returns the outer name, or URI if kind is "resource". Methods are not renamed.
func (p prefix) outer(kind, name string) string {
	switch kind {
	case "method":
		return name
	case "resource":
		return p.outerURI(name)
	}
	return string(p) + name
}

// inner returns the inner name, or URI if kind is "resource", if name belongs to the mount.
func (p prefix) inner(kind, name string) (inner string, ok bool) {
	switch kind {
	case "method":
		return "", false
	case "resource":
		return p.innerURI(name)
	}
	return strings.CutPrefix(name, string(p))
}

func (p prefix) outerURI(uri string) string {
	if page, ok := strings.CutPrefix(uri, pageScheme); ok {
		return p.pages() + page
	}
	return p.uris() + uri
}

// innerURI returns the inner URI, if uri belongs to the mount. It returns "" if uri belongs to
// the mount but is not the outer URI of anything, such as a page with the scheme mount.
//
// Whether a URI belongs to a mount is decided by its normal form, as seen by middleware. The
// inner URI is spelled as in uri, because the mounted server may compare it byte for byte with
// those that it has listed.
func (p prefix) innerURI(uri string) (inner string, ok bool) {
	form := uritemplate.Normal(uri)
	if pages := p.pages(); strings.HasPrefix(form, pages) {
		return pageScheme + uri[len(pages):], true // the prefix is as long in any spelling
	}
	inner, ok = strings.CutPrefix(form, p.uris())
	if !ok || strings.HasPrefix(inner, pageScheme) {
		return "", ok
	}
	return uri[len(p.uris()):], true
}

// prefixIn returns what is the prefix in a URI in normal form, if it belongs to a mount.
func prefixIn(uri string) prefix {
	rest, ok := strings.CutPrefix(uri, mountPages)
	end := "/"
	if !ok {
		rest, end = strings.TrimPrefix(uri, mountScheme), ":"
	}
	found, _, _ := strings.Cut(rest, end)
	return prefix(found)
}

// result returns a copy of a result with outer URIs and without the identity of the mounted
// server: the caller's server is the outermost mux, in every era.
func (p prefix) result(res Result) Result {
	switch r := res.(type) {
	case *CallToolResult:
		c := anonymous(r)
		c.Content = make(Contents, len(r.Content))
		for i, part := range r.Content {
			c.Content[i] = p.content(part)
		}
		return c
	case *GetPromptResult:
		c := anonymous(r)
		c.Messages = make([]*PromptMessage, len(r.Messages))
		for i, m := range r.Messages {
			if m != nil {
				renamed := *m
				renamed.Content = p.content(m.Content)
				c.Messages[i] = &renamed
			}
		}
		return c
	case *ReadResourceResult:
		c := anonymous(r)
		c.Contents = make([]*ResourceContents, len(r.Contents))
		for i, part := range r.Contents {
			c.Contents[i] = p.part(part)
		}
		return c
	case *CompleteResult:
		return anonymous(r)
	case *InputRequired:
		return anonymous(r)
	case *EmptyResult: // result of an extension
		return anonymous(r)
	}
	return res
}

// anonymous returns a copy of a result without the identity of the server.
func anonymous[R any, P interface {
	*R
	Result
}](r P) P {
	c := *r
	base := P(&c).base()
	base.Meta = withoutKey(base.Meta, MetaServerInfo)
	return &c
}

func (p prefix) content(c Content) Content {
	switch c := c.(type) {
	case *ResourceLink:
		if strings.HasPrefix(c.URI, "https://") || strings.HasPrefix(c.URI, "http://") {
			return c // clients fetch it directly (server/resources)
		}
		link := *c
		link.URI = p.outerURI(c.URI)
		return &link
	case *EmbeddedResource:
		embedded := *c
		embedded.Resource = p.part(c.Resource)
		return &embedded
	}
	return c
}

func (p prefix) part(part *ResourceContents) *ResourceContents {
	if part == nil {
		return nil
	}
	c := *part
	c.URI = p.outerURI(part.URI)
	return &c
}

// The keys in the _meta of tools that contain the URI of a page (MCP Apps). metaPage is
// deprecated.
const (
	metaUI   = "ui"
	metaPage = "ui/resourceUri"
)

// toolMeta returns the _meta of a tool with the outer URI of its page. Malformed values are
// left unchanged for clients to reject.
func (p prefix) toolMeta(meta Meta) Meta {
	ui, flat := p.ui(meta[metaUI]), p.page(meta[metaPage])
	if ui == nil && flat == nil {
		return meta
	}
	meta = maps.Clone(meta)
	if ui != nil {
		meta[metaUI] = ui
	}
	if flat != nil {
		meta[metaPage] = flat
	}
	return meta
}

// ui returns the member ui of a tool's _meta with the outer URI of its page, or nil if it has
// no page.
func (p prefix) ui(raw json.RawMessage) json.RawMessage {
	var ui map[string]json.RawMessage
	if raw == nil || unmarshal(raw, &ui) != nil {
		return nil
	}
	page := p.page(ui["resourceUri"])
	if page == nil {
		return nil
	}
	ui["resourceUri"] = page
	return mustMarshal(ui)
}

// page returns the outer URI of a page, as JSON, or nil if raw is not a string.
func (p prefix) page(raw json.RawMessage) json.RawMessage {
	var uri string
	if raw == nil || unmarshal(raw, &uri) != nil {
		return nil
	}
	return mustMarshal(p.outerURI(uri))
}

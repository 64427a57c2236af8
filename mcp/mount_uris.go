// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"maps"
	"strings"
)

// URIs of mounts. A URI keeps its inner URI byte for byte, so that removing the prefix is
// exact. A page of MCP Apps has a URI that begins with ui://, or hosts refuse it, so it gets
// its prefix after that.

// pageScheme begins the URIs of the pages of MCP Apps.
const pageScheme = "ui://"

// pagePrefixOf begins the URIs of the pages of a mount.
func pagePrefixOf(prefix string) string { return pageScheme + "mount/" + prefix + "/" }

// outerURI returns the URI outside of the mount.
func (mt *mount) outerURI(uri string) string {
	if page, ok := strings.CutPrefix(uri, pageScheme); ok {
		return mt.pagePrefix + page
	}
	return mt.uriPrefix + uri
}

// innerURI returns the URI inside of the mount, if uri belongs to the mount. It is "" if
// nothing in the mount has that URI outside: a page has only the one that outerURI returns.
func (mt *mount) innerURI(uri string) (string, bool) {
	if page, ok := strings.CutPrefix(uri, mt.pagePrefix); ok {
		return pageScheme + page, true
	}
	inner, ok := strings.CutPrefix(uri, mt.uriPrefix)
	if strings.HasPrefix(inner, pageScheme) {
		inner = ""
	}
	return inner, ok
}

// The keys of the _meta of tools that name a page (MCP Apps). The second one is deprecated.
const (
	metaUI   = "ui"
	metaPage = "ui/resourceUri"
)

// outerToolMeta returns the _meta of a tool with the URI that its page has outside of the
// mount. What is malformed stays as it is, for clients to refuse.
func (mt *mount) outerToolMeta(meta Meta) Meta {
	ui, flat := mt.outerUI(meta[metaUI]), mt.outerPage(meta[metaPage])
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

// outerUI returns the member ui of a tool's _meta with another page, nil if it has none.
func (mt *mount) outerUI(raw json.RawMessage) json.RawMessage {
	var ui map[string]json.RawMessage
	if raw == nil || unmarshal(raw, &ui) != nil {
		return nil
	}
	page := mt.outerPage(ui["resourceUri"])
	if page == nil {
		return nil
	}
	ui["resourceUri"] = page
	return mustMarshal(ui)
}

// outerPage returns the URI of a page, as JSON, nil if raw is no URI.
func (mt *mount) outerPage(raw json.RawMessage) json.RawMessage {
	var uri string
	if raw == nil || unmarshal(raw, &uri) != nil {
		return nil
	}
	return mustMarshal(mt.outerURI(uri))
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lint

import (
	"net/url"
	"strings"

	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp"
)

// Resources checks the resources and resource templates of a server. Nil elements are ignored.
func Resources(resources []*mcp.Resource, templates []*mcp.ResourceTemplate) []Finding {
	var found []Finding
	seen := map[string]bool{}
	for _, r := range resources {
		if r == nil {
			continue
		}
		it := item{KindResource, r.URI, &found}
		it.named("/uri", r.URI, seen)
		if u, err := url.Parse(r.URI); r.URI != "" && (err != nil || !u.IsAbs()) {
			it.report(Error, "/uri", "resource-uri", "this is not a URI with a scheme", "write it as scheme://path, with %20 for spaces")
		}
		it.resource(r.Name, r.Title, r.Description, r.MIMEType)
	}
	seen = map[string]bool{}
	for _, t := range templates {
		if t == nil {
			continue
		}
		it := item{KindTemplate, t.URITemplate, &found}
		it.named("/uriTemplate", t.URITemplate, seen)
		if _, err := uritemplate.Parse(t.URITemplate); err != nil {
			it.report(Error, "/uriTemplate", "resource-uri", "this is not a URI template of RFC 6570: "+err.Error(), "mend it")
		}
		it.resource(t.Name, t.Title, t.Description, t.MIMEType)
	}
	return ordered(found)
}

// resource checks the fields that resources and templates have in common.
func (it item) resource(name, title, description, mimeType string) {
	if name == "" {
		it.report(Error, "/name", "missing", "the name is empty", "set it")
	}
	it.hidden("/name", name)
	it.hidden("/title", title)
	it.described("/description", description)
	if it.kind == KindResource && strings.TrimSpace(mimeType) == "" {
		it.report(Note, "/mimeType", "mime-type", "there is no mimeType, by which hosts decide how to show it", "add one")
	}
}

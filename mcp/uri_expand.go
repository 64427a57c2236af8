// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/sparse"
	"github.com/go-psi/psi/internal/uritemplate"
)

// ExpandURI returns the URI of a resource under a template (RFC 6570), in the form in which
// [Mux.ResourceUpdated] announces it. vars holds the values of the variables as the In of
// [ResourceFunc] does: it is a struct of strings, numbers and booleans, or a map with string
// keys. Values are percent-encoded.
//
// A variable without a value, or with the value null, is an error, except for one that
// appears only in expressions such as {?query}, which is left out. A value that the template
// has no variable for is an error. So are values with which the URI would not match the
// template, such as an empty {id} of "notes://{id}".
func ExpandURI(template string, vars any) (string, error) {
	t, err := uritemplate.Parse(uritemplate.NormalPattern(template))
	if err != nil {
		return "", err
	}
	raw, err := marshalStrictly(vars)
	if err != nil {
		return "", fmt.Errorf("mcp: the variables of %q: %w", template, err)
	}
	var members map[string]json.RawMessage
	if err := unmarshal(raw, &members); err != nil || members == nil {
		return "", fmt.Errorf("mcp: the variables of %q are a %T, but must be a struct or a map with string keys", template, vars)
	}
	values := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(t.Names(), name) {
			return "", fmt.Errorf("mcp: %q has no variable %q%s", template, name, nearest.Hint(name, t.Names()))
		}
		switch value := members[name]; value[0] {
		case 'n':
		case '"':
			values[name] = jsonscan.Text(value)
		case '{', '[':
			return "", fmt.Errorf("mcp: the value of %q in %q must be a string, a number or a boolean", name, template)
		default:
			values[name] = string(value)
		}
	}
	for _, name := range t.Required() {
		if _, ok := values[name]; !ok {
			return "", fmt.Errorf("mcp: the variable %q of %q has no value", name, template)
		}
	}
	uri, err := t.Expand(values)
	if err != nil {
		return "", fmt.Errorf("mcp: %w", err)
	}
	uri = uritemplate.Normal(uri)
	if _, ok := t.Match(uri); !ok {
		return "", fmt.Errorf("mcp: %q does not match %q", uri, template)
	}
	return uri, nil
}

// warnUnroutable logs, once for each URI, that an updated resource is not one of this mux: no
// client can have subscribed to it here, so its URI is probably misspelled.
func (g *registry) warnUnroutable(uri string) {
	s := g.load()
	if e, _ := s.resource(uri); e != nil || s.mountOf("resource", uri) != nil || strings.HasSuffix(uri, "/") || !g.warned.first(uri) {
		return
	}
	g.opts.Logger.Warn("mcp: an updated resource matches no registration of this mux"+s.hint(uri), "uri", uri)
}

// warnListed logs a resource on the first page of a template's list that no registration of the
// mux matches, so that it cannot be read.
func (e *entry) warnListed(ctx context.Context, s *snapshot, listed []*Resource) {
	for _, r := range listed {
		if ctx.Err() != nil {
			return
		}
		if r == nil {
			continue
		}
		uri := uritemplate.Normal(r.URI)
		if found, _ := s.resource(uri); found == nil && s.mountOf("resource", uri) == nil {
			e.sealer.logger.WarnContext(ctx, "mcp: a listed resource cannot be read: its URI matches no registration of this mux"+s.hint(uri), "uri", sparse.Excerpt(r.URI), "template", e.name, "registered", e.site)
			return
		}
	}
}

// hint returns a question for a URI that no registration matches: for one that is similar, or
// for the text before the first variable of a template.
func (s *snapshot) hint(uri string) string {
	var uris, beginnings []string
	for _, e := range s.resources {
		uris = append(uris, e.name)
	}
	for _, e := range s.templates {
		before, _, _ := strings.Cut(e.name, "{")
		beginnings = append(beginnings, before)
	}
	if hint := nearest.Hint(uri, uris); hint != "" {
		return hint
	}
	return nearest.Hint(uri[:strings.LastIndexByte(uri, '/')+1], beginnings)
}

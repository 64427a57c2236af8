// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp"
)

// Allow hides from every caller the items of a kind whose names match none of the patterns.
// Items of other kinds are not affected. A * in a pattern matches any sequence of
// characters, including slashes and the empty sequence; every other character matches
// itself. Patterns for resources are brought into normal form, as URIs are: "KBInfo://*"
// matches "kbinfo://a".
//
// Use it around a whole mux, or to expose only a part of a server:
//
//	mux.With(middleware.Allow(mcp.KindTool, "get_*", "search")).Mount("github_", conn)
//
// Patterns match the names inside the middleware: here, names without the prefix of the
// mount. Hidden items behave as with [Visible] and cannot be reached by name. Without patterns,
// as from an empty list in a configuration, Allow hides all items of the kind. A pattern that
// matches no listed tool or prompt is logged once, with the logger of the mux. Allow panics if
// kind is invalid or a pattern is empty.
func Allow(kind mcp.Kind, patterns ...string) mcp.Middleware {
	p := parsePatterns("Allow", kind, patterns)
	return hideFromAll(p, p.match)
}

// Deny hides from every caller the items of a kind whose names match any of the patterns.
// Without patterns, it hides none. It is otherwise like [Allow]. If both are used, an item must pass both.
func Deny(kind mcp.Kind, patterns ...string) mcp.Middleware {
	p := parsePatterns("Deny", kind, patterns)
	return hideFromAll(p, func(name string) bool { return !p.match(name) })
}

// hideFromAll returns middleware that hides the items of a kind for which visible returns
// false. The view is the same for every caller, so results keep their cache scope.
func hideFromAll(p *patterns, visible func(name string) bool) mcp.Middleware {
	v := viewer{
		visible: func(k mcp.Kind, name string) bool { return k != p.kind || visible(name) },
		refusal: notFound, sameForAll: true, listed: p.warnUnmatched,
	}
	return hide(func(context.Context, *mcp.Request) viewer { return v })
}

// patterns are the patterns of Allow or Deny.
type patterns struct {
	function string
	kind     mcp.Kind
	texts    []string
	parts    [][]string  // of each text
	checked  atomic.Bool // by warnUnmatched
}

// parsePatterns parses patterns. Only * is special: URIs contain ? and [, which mean something
// in globs and regular expressions.
func parsePatterns(function string, kind mcp.Kind, texts []string) *patterns {
	switch {
	case kind != mcp.KindTool && kind != mcp.KindPrompt && kind != mcp.KindResource:
		panic(fmt.Sprintf("middleware.%s: the kind is %q; use mcp.KindTool, mcp.KindPrompt or mcp.KindResource", function, kind))
	case slices.Contains(texts, ""):
		panic(fmt.Sprintf("middleware.%s: a pattern is empty; use * for all", function))
	}
	p := &patterns{function: function, kind: kind, texts: slices.Clone(texts), parts: make([][]string, len(texts))}
	for i, text := range texts {
		p.parts[i] = strings.Split(text, "*")
		if kind == mcp.KindResource {
			normalizeParts(p.parts[i])
		}
	}
	return p
}

// match reports whether a name matches any of the patterns.
func (p *patterns) match(name string) bool {
	return slices.ContainsFunc(p.parts, func(parts []string) bool { return matchParts(parts, name) })
}

// warnUnmatched logs the patterns that match none of the listed names: they are probably
// misspelled. It looks at the first list of tools or prompts that is not empty and has only one
// page. Patterns for resources may match URIs that no list has.
func (p *patterns) warnUnmatched(ctx context.Context, req *mcp.Request, res mcp.Result) {
	if p.checked.Load() {
		return
	}
	var names []string
	var page mcp.Page
	switch r := res.(type) {
	case *mcp.ListToolsResult:
		names, page = namesOf(r.Tools, func(t *mcp.Tool) string { return t.Name }), r.Page
	case *mcp.ListPromptsResult:
		names, page = namesOf(r.Prompts, func(p *mcp.Prompt) string { return p.Name }), r.Page
	}
	var params mcp.ListParams
	if p.kind != kindOfList(req.Method) || len(names) == 0 || page.NextCursor != nil || req.Decode(&params) != nil || params.Cursor != nil || p.checked.Swap(true) {
		return
	}
	for i, parts := range p.parts {
		if ctx.Err() == nil && !slices.ContainsFunc(names, func(name string) bool { return matchParts(parts, name) }) {
			req.Logger().WarnContext(ctx, fmt.Sprintf("middleware.%s: the pattern matches no %s that is listed%s", p.function, p.kind, nearest.Hint(p.texts[i], names)), "pattern", p.texts[i])
		}
	}
}

func kindOfList(method string) mcp.Kind {
	switch method {
	case mcp.MethodListTools:
		return mcp.KindTool
	case mcp.MethodListPrompts:
		return mcp.KindPrompt
	}
	return ""
}

// namesOf returns the names of the elements of a list.
func namesOf[D any](list []*D, name func(*D) string) []string {
	names := make([]string, 0, len(list))
	for _, d := range list {
		if d != nil {
			names = append(names, name(d))
		}
	}
	return names
}

// innerScheme finds the scheme of a URI that begins within a part of a pattern, such as that
// of a mounted server's resource in "mount:*:KBInfo://*".
var innerScheme = regexp.MustCompile(`(?:^|:)([A-Za-z][A-Za-z0-9+.-]*://)`)

// normalizeParts brings the parts of a pattern for URIs into the form in which URIs are
// matched. The name of a host may extend over several parts.
func normalizeParts(parts []string) {
	inHost := false
	for i, part := range parts {
		begin := 0 // of a URI
		if i > 0 {
			begin = len(part)
			if at := innerScheme.FindStringSubmatchIndex(part); at != nil {
				begin = at[2]
			}
		}
		text, uri := normalText(part[:begin]), uritemplate.NormalPattern(part[begin:])
		if i < len(parts)-1 && !strings.HasSuffix(part, "/") {
			uri = strings.TrimSuffix(uri, "/") // the URI continues
		}
		if inHost {
			end := hostEnd(text)
			text = strings.ToLower(text[:end]) + text[end:]
			inHost = end == len(text)
		}
		if scheme, rest, ok := strings.Cut(uri, "://"); ok {
			inHost = (strings.HasSuffix(scheme, "http") || strings.HasSuffix(scheme, "https")) && hostEnd(rest) == len(rest)
		}
		parts[i] = text + uri
	}
}

// normalText is like [uritemplate.NormalPattern] for text that does not begin with a scheme.
func normalText(s string) string {
	const noScheme = "*"
	return strings.TrimPrefix(uritemplate.NormalPattern(noScheme+s), noScheme)
}

// hostEnd returns the index at which the host at the start of s ends.
func hostEnd(s string) int {
	if end := strings.IndexAny(s, "/?#"); end >= 0 {
		return end
	}
	return len(s)
}

// matchParts reports whether name consists of the parts of a pattern, with any text between
// them. It takes time linear in len(name) for each part.
func matchParts(parts []string, name string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return name == first
	}
	rest, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, last); !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return true
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

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
// as from an empty list in a configuration, Allow hides all items of the kind. It panics if kind
// is invalid or a pattern is empty.
func Allow(kind mcp.Kind, patterns ...string) mcp.Middleware {
	matches := matchAny("Allow", kind, patterns)
	return hideFromAll(kind, matches)
}

// Deny hides from every caller the items of a kind whose names match any of the patterns.
// Without patterns, it hides none. It is otherwise like [Allow]. If both are used, an item must pass both.
func Deny(kind mcp.Kind, patterns ...string) mcp.Middleware {
	matches := matchAny("Deny", kind, patterns)
	return hideFromAll(kind, func(name string) bool { return !matches(name) })
}

// hideFromAll returns middleware that hides the items of a kind for which visible returns
// false. The view is the same for every caller, so results keep their cache scope.
func hideFromAll(kind mcp.Kind, visible func(name string) bool) mcp.Middleware {
	v := viewer{
		visible: func(k mcp.Kind, name string) bool { return k != kind || visible(name) },
		refusal: notFound, sameForAll: true,
	}
	return hide(func(context.Context, *mcp.Request) viewer { return v })
}

// matchAny returns a function that reports whether a name matches any of the patterns. Only *
// is special: URIs contain ? and [, which mean something in globs and regular expressions.
func matchAny(function string, kind mcp.Kind, patterns []string) func(name string) bool {
	switch {
	case kind != mcp.KindTool && kind != mcp.KindPrompt && kind != mcp.KindResource:
		panic(fmt.Sprintf("middleware.%s: the kind is %q; use mcp.KindTool, mcp.KindPrompt or mcp.KindResource", function, kind))
	case slices.Contains(patterns, ""):
		panic(fmt.Sprintf("middleware.%s: a pattern is empty; use * for all", function))
	}
	parts := make([][]string, len(patterns))
	for i, p := range patterns {
		parts[i] = strings.Split(p, "*")
		if kind == mcp.KindResource {
			normalizeParts(parts[i])
		}
	}
	return func(name string) bool {
		for _, p := range parts {
			if matchParts(p, name) {
				return true
			}
		}
		return false
	}
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

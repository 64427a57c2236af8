// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/internal/schematree"
)

// Limits of the regular expressions of one schema; further ones are left out.
const (
	maxPatterns         = 20_000 // instructions
	instructionsPerNode = 25     // that cost as much as a part of a schema
)

// assertions copies what restricts scalars and lists. Beside a list of values, it is not needed,
// and may contradict it.
func (c *converter) assertions(obj, out map[string]any, types []string) {
	if c.output {
		return
	}
	if len(types) == 1 {
		tellDefault(obj, out, types[0])
	}
	if out["enum"] != nil {
		return
	}
	if slices.Contains(types, "number") || slices.Contains(types, "integer") {
		numberBounds(obj, out)
	}
	if slices.Contains(types, "string") {
		c.textBounds(obj, out)
	}
	if slices.Contains(types, "array") {
		copySizes(obj, out, "minItems", "maxItems")
		if flag(obj, "uniqueItems") {
			out["uniqueItems"] = true
		}
	}
}

func numberBounds(obj, out map[string]any) {
	for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} {
		if n, ok := obj[key].(json.Number); ok && len(n) < 40 {
			out[key] = n
		}
	}
	for flagged, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if limit, ok := out[bound]; ok && flag(obj, flagged) { // 2.0 and 3.0
			out[flagged] = limit
			delete(out, bound)
		}
	}
	if n, ok := out["multipleOf"].(json.Number); ok && (strings.HasPrefix(n.String(), "-") || strings.Trim(n.String(), "0.") == "") {
		delete(out, "multipleOf")
	}
}

func copySizes(obj, out map[string]any, keys ...string) {
	for _, key := range keys {
		if n, ok := obj[key].(json.Number); ok && len(n) < 10 && strings.Trim(n.String(), "0123456789") == "" {
			out[key] = n
		}
	}
}

func (c *converter) textBounds(obj, out map[string]any) {
	copySizes(obj, out, "minLength", "maxLength")
	if pattern := patternOf(text(obj, "pattern")); pattern != "" && len(pattern) < 1000 {
		if tree, err := syntax.Parse(pattern, syntax.Perl); err == nil && c.affords(tree) {
			out["pattern"] = pattern
		}
	}
	switch format := text(obj, "format"); format {
	case "date-time", "date", "email", "uri", "uuid", "byte", "binary":
		out["format"] = format
	}
}

var inSlashes = regexp.MustCompile(`^/(\^.*)/([a-z]*)$`)

// patternOf returns a pattern, which may be a literal of JavaScript. One with flags is dropped.
func patternOf(pattern string) string {
	if m := inSlashes.FindStringSubmatch(pattern); m != nil && m[2] != "" {
		return ""
	} else if m != nil {
		return m[1]
	}
	return pattern
}

// tellDefault adds the default to the description. It is not sent for the model: the API
// knows its defaults, and they may depend on other arguments.
func tellDefault(obj, out map[string]any, kind string) {
	value := obj["default"]
	if got := kindOf(value); value == nil || !isScalar(value) || got != kind && (got != "integer" || kind != "number") {
		return
	}
	about, _ := out["description"].(string)
	if s, ok := value.(string); ok {
		value = cut(s, 100)
	}
	out["description"] = strings.TrimSpace(about + " (default: " + printable.Line(cut(scalarText(value), 100)) + ")")
}

// affords reports whether the schema may have another regular expression: each is compiled.
func (c *converter) affords(pattern *syntax.Regexp) bool {
	size := schematree.PatternSize(pattern, maxPatterns)
	if c.patterns+size > maxPatterns {
		return false
	}
	c.patterns += size
	return true
}

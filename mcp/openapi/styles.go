// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// scalarText returns a value as the text of a parameter.
func scalarText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		return "" // a value that was decoded can be encoded
	}
	return string(encoded)
}

// simple returns a value in the style "simple", with escape applied to its parts.
func simple(v any, explode bool, escape func(string) string) string {
	between := ","
	if explode {
		between = "="
	}
	return strings.Join(parts(v, between, escape), ",")
}

// parts returns the escaped parts of a list or an object, whose names and values are joined
// by between, or of a scalar, which has one.
func parts(v any, between string, escape func(string) string) (out []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, escape(scalarText(e)))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, escape(key)+between+escape(scalarText(v[key])))
		}
	default:
		out = []string{escape(scalarText(v))}
	}
	return out
}

// segment returns the value of a parameter of the path.
func (p *param) segment(v any) (string, error) {
	between, separator, prefix := ",", ",", ""
	if p.explode {
		between = "="
	}
	switch p.style {
	case "label":
		prefix = "."
		if p.explode {
			separator = "."
		}
	case "matrix":
		prefix = ";" + url.PathEscape(p.name) + "="
		_, isList := v.([]any)
		if _, isObject := v.(map[string]any); p.explode && isObject {
			prefix, separator = ";", ";"
		} else if p.explode && isList {
			separator = prefix
		}
	}
	values := parts(v, between, url.PathEscape)
	joined := strings.Join(values, separator)
	plain, err := url.PathUnescape(joined)
	if err != nil || plain == "" {
		return "", fmt.Errorf("the argument %s must not be empty", p.arg)
	}
	if strings.ContainsFunc(plain, isControl) {
		return "", fmt.Errorf("the argument %s must not have control characters", p.arg)
	}
	return prefix + joined, nil
}

// dots returns a part of a path that servers and proxies resolve, which is "." or "..", or "".
// Some decode a path first, and some ignore what follows a semicolon.
func dots(path string) string {
	plain, err := url.PathUnescape(path)
	if err != nil {
		plain = path
	}
	for _, part := range strings.FieldsFunc(plain, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part, _, _ = strings.Cut(part, ";"); part == "." || part == ".." {
			return part
		}
	}
	return ""
}

// pairs returns the parameters of the query for a value.
func (p *param) pairs(v any) []string {
	return queryPairs(p.name, v, p.style, p.explode, p.delimiter, p.escape())
}

func (p *param) escape() func(string) string {
	if !p.reserved {
		return escapeQuery
	}
	return func(s string) string { // as escapeQuery, but for what cannot end the parameter
		for _, c := range ":/?@!$'()*,;[]" {
			s = strings.ReplaceAll(s, string(c), "\x00"+string(c))
		}
		var b strings.Builder
		for part := range strings.SplitSeq(s, "\x00") {
			if part != "" && strings.ContainsRune(":/?@!$'()*,;[]", rune(part[0])) {
				b.WriteByte(part[0])
				part = part[1:]
			}
			b.WriteString(escapeQuery(part))
		}
		return b.String()
	}
}

// escapeQuery is url.QueryEscape, with %20 for a space, which every server reads.
func escapeQuery(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func queryPairs(name string, v any, style string, explode bool, delimiter string, escape func(string) string) []string {
	key := escapeQuery(name)
	if style == "deepObject" {
		return deepPairs(name, v, escape)
	}
	separator := ","
	switch style {
	case "spaceDelimited":
		separator = "%20"
	case "pipeDelimited":
		separator = "%7C"
	}
	if delimiter != "" {
		separator = escapeQuery(delimiter)
	}
	var out []string
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return nil
		}
		values := parts(v, "", escape)
		if !explode {
			return []string{key + "=" + strings.Join(values, separator)}
		}
		for _, s := range values {
			out = append(out, key+"="+s)
		}
	case map[string]any:
		if explode {
			return parts(v, "=", escape)
		}
		if len(v) > 0 {
			out = []string{key + "=" + strings.Join(parts(v, separator, escape), separator)}
		}
	default:
		out = []string{key + "=" + escape(scalarText(v))}
	}
	return out
}

func deepPairs(name string, v any, escape func(string) string) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, deepPairs(name+"["+key+"]", v[key], escape)...)
		}
	case []any:
		for i, e := range v {
			index := "" // which not every server knows, but without it, lists of objects run together
			if !isScalar(e) {
				index = strconv.Itoa(i)
			}
			out = append(out, deepPairs(name+"["+index+"]", e, escape)...)
		}
	case nil:
	default:
		out = []string{escapeQuery(name) + "=" + escape(scalarText(v))}
	}
	return out
}

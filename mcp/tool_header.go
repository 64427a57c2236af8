// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp/transport"
)

// A paramHeader is an argument that the schema annotates with x-mcp-header. Over HTTP, its
// value is also sent in a header, which proxies can use for routing.
type paramHeader struct {
	key  string   // canonical: Mcp-Param-Region
	path []string // names of the properties that lead to the argument
	kind string   // string, integer or boolean
}

const (
	headerKeyword     = "x-mcp-header"
	paramHeaderPrefix = "Mcp-Param-"
)

// isHeaderToken reports whether name may be part of a header name (RFC 9110, token).
func isHeaderToken(name string) bool {
	return name != "" && strings.Trim(name, alphanumeric+"!#$%&'*+.^_`|~-") == ""
}

// paramHeaders returns the arguments that a schema annotates. It returns an error if the
// specification does not allow an annotation (transports/streamable-http).
func paramHeaders(schema json.RawMessage) ([]paramHeader, error) {
	if !strings.Contains(string(schema), headerKeyword) {
		return nil, nil
	}
	c := headerCollector{scan: jsonscan.Get(schema, 0)}
	defer c.scan.Release()
	if c.object(); c.err != nil || c.scan.End() != nil {
		return nil, c.err // malformed JSON has no annotations
	}
	slices.SortFunc(c.found, func(a, b paramHeader) int { return slices.Compare(a.path, b.path) })
	return c.found, c.checkDuplicates()
}

// A headerCollector reads a schema once.
type headerCollector struct {
	scan  *jsonscan.Scanner
	path  []string // properties that lead to the current schema
	found []paramHeader
	err   error
}

// object collects the annotations of a schema that is reached through properties only.
func (c *headerCollector) object() {
	if c.scan.Kind() != '{' {
		c.scan.Skip() // a boolean schema
		return
	}
	var name, kind json.RawMessage
	for ok := c.scan.Object() && c.scan.Member(); ok; ok = c.scan.Member() {
		switch keyword := string(c.scan.Name()); keyword {
		case headerKeyword:
			name = c.scan.Value()
		case "properties":
			c.properties()
		case "type":
			kind = c.scan.Value()
		default:
			c.rejectBelow(keyword, keyword)
		}
	}
	if name != nil {
		c.add(name, kind)
	}
}

func (c *headerCollector) properties() {
	if c.scan.Kind() != '{' {
		c.scan.Skip() // the schema compiler reports it
		return
	}
	for ok := c.scan.Object() && c.scan.Member(); ok; ok = c.scan.Member() {
		c.path = append(c.path, string(c.scan.Name()))
		c.object()
		c.path = c.path[:len(c.path)-1]
	}
}

// fail records an error at the current path. Only the first error is kept.
func (c *headerCollector) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("%s at /%s %s", headerKeyword, strings.Join(c.path, "/"), what)
	}
}

// Keywords whose values are not schemas: the values of dataKeywords are data, and those of
// mapKeywords are objects keyed by the names of properties or schemas.
var (
	dataKeywords = words("const default enum examples")
	mapKeywords  = words("$defs definitions dependencies dependentRequired dependentSchemas patternProperties properties")
)

// rejectBelow rejects annotations anywhere in the value of keyword. top is the outermost
// keyword, for the error. Annotations are allowed only in schemas that are reached through
// "properties" alone, which object handles.
func (c *headerCollector) rejectBelow(top, keyword string) {
	switch kind := c.scan.Kind(); {
	case kind == '[' && !slices.Contains(dataKeywords, keyword):
		for ok := c.scan.Array() && c.scan.Element(); ok; ok = c.scan.Element() {
			c.rejectBelow(top, "")
		}
	case kind == '{' && !slices.Contains(dataKeywords, keyword):
		for ok := c.scan.Object() && c.scan.Member(); ok; ok = c.scan.Member() {
			name := string(c.scan.Name())
			switch {
			case slices.Contains(mapKeywords, keyword):
				name = "" // not a keyword
			case name == headerKeyword:
				c.fail(fmt.Sprintf("is below %q: only properties may lead to it", top))
			}
			c.rejectBelow(top, name)
		}
	default:
		c.scan.Skip()
	}
}

func (c *headerCollector) add(raw, kind json.RawMessage) {
	var name, typ string
	if unmarshal(raw, &name) != nil || !isHeaderToken(name) {
		c.fail(fmt.Sprintf("is %s: it must be a header token", raw))
		return
	}
	if _ = unmarshal(kind, &typ); typ != "string" && typ != "integer" && typ != "boolean" {
		c.fail(fmt.Sprintf("is on a property of type %s: it must be string, integer or boolean", cmp.Or(string(kind), "(not given)")))
		return
	}
	c.found = append(c.found, paramHeader{canonicalHeader(paramHeaderPrefix + name), slices.Clone(c.path), typ})
}

// checkDuplicates returns an error if two arguments are mirrored in the same header.
func (c *headerCollector) checkDuplicates() error {
	seen := make(map[string]bool, len(c.found))
	for _, p := range c.found {
		if seen[p.key] {
			return fmt.Errorf("%s %q at /%s appears twice in one schema", headerKeyword, strings.TrimPrefix(p.key, paramHeaderPrefix), strings.Join(p.path, "/"))
		}
		seen[p.key] = true
	}
	return nil
}

// canonicalHeader returns the canonical form of a header name, like net/textproto.
func canonicalHeader(name string) string {
	b := []byte(strings.ToLower(name))
	upper := true
	for i, c := range b {
		if upper && c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
		upper = c == '-'
	}
	return string(b)
}

// mirrorsParams reports whether the sender of a request mirrors arguments in headers.
func (r *Request) mirrorsParams() bool { return r.Header != nil && r.isModern() }

// checkParamHeaders returns an error if the headers and the arguments of a call differ.
func checkParamHeaders(annotated []paramHeader, req *Request) error {
	if !req.mirrorsParams() {
		return nil
	}
	for _, p := range annotated {
		if err := p.check(req); err != nil {
			return err
		}
	}
	return nil
}

func (p *paramHeader) check(req *Request) error {
	want := argumentAt(req.Arguments(), p.path)
	values := req.Header[p.key]
	switch {
	case want == nil && len(values) == 0:
		return nil
	case want == nil:
		return headerMismatch(p.key, "the argument is absent")
	case len(values) == 0:
		if string(want) == `""` || slices.Contains(req.unmirrored, p.path[0]) {
			return nil // the header may be omitted for an empty value
		}
		return headerMismatch(p.key, "the header is missing")
	case len(values) > 1:
		return headerMismatch(p.key, "the header appears more than once")
	}
	text, err := transport.DecodeHeaderValue(values[0])
	if err != nil {
		return headerMismatch(p.key, err.Error())
	}
	if !p.equal(text, want) {
		return headerMismatch(p.key, "the header and the argument differ")
	}
	return nil
}

func headerMismatch(key, why string) error {
	return Errorf(CodeHeaderMismatch, "header %s: %s", key, why)
}

// equal reports whether the text of a header has the value of an argument. An exponent is not
// compared as a number: headers are decimal, and what reads them in front of psi may not read
// exponents.
func (p *paramHeader) equal(text string, argument json.RawMessage) bool {
	switch {
	case argument[0] == '"':
		return text == string(jsonscan.Unquote(argument))
	case text == string(argument):
		return true
	case p.kind != "integer" || strings.ContainsAny(text, "eE"): // headers are decimal
		return false
	}
	a, okA := strictjson.ParseDecimal(text)
	b, okB := strictjson.ParseDecimal(string(argument))
	return okA && okB && a == b
}

// text returns the value of an argument as it is sent in a header.
func (p *paramHeader) text(argument json.RawMessage) string {
	if argument[0] == '"' {
		return jsonscan.Text(argument)
	}
	if n, ok := strictjson.ParseDecimal(string(argument)); ok && p.kind == "integer" {
		if text := n.String(); !strings.Contains(text, "e") {
			return text
		}
	}
	return string(argument)
}

// argumentAt returns the value at a path of members, or nil if it is absent or null.
func argumentAt(value json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		value = jsonscan.Member(value, name)
	}
	if string(value) == "null" {
		return nil
	}
	return value
}

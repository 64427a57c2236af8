// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-psi/psi/internal/ascii"
	"github.com/go-psi/psi/internal/decimal"
	"github.com/go-psi/psi/internal/jsonscan"
)

// paramHeader is an argument that the schema annotates with x-mcp-header: over
// HTTP its value stands in a header as well, for those who route by headers.
type paramHeader struct {
	key  string   // canonical: Mcp-Param-Region
	path []string // names of the properties that lead to the argument
	kind string   // string, integer or boolean
}

const headerKeyword = "x-mcp-header"

// isHeaderToken reports whether a name may be part of a header's (RFC 9110, token).
func isHeaderToken(name string) bool { return ascii.IsName(name, math.MaxInt, "!#$%&'*+.^_`|~-") }

// paramHeaders collects the annotations of a schema, or says which of them the
// specification does not allow (transports/streamable-http).
func paramHeaders(schema json.RawMessage) ([]paramHeader, error) {
	if !strings.Contains(string(schema), headerKeyword) {
		return nil, nil
	}
	var c headerCollector
	if err := c.object(schema, nil); err != nil {
		return nil, err
	}
	return c.found, nil
}

// plainNumber is what a header can have for an integer besides its JSON: 42.0, say.
// What Go reads as a number beyond that, such as 0x2a, others do not.
var plainNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`) })

type headerCollector struct{ found []paramHeader }

// object collects from a schema that was reached by properties only.
func (c *headerCollector) object(schema json.RawMessage, path []string) error {
	var node map[string]json.RawMessage
	if unmarshal(schema, &node) != nil {
		return nil //nolint:nilerr // a boolean schema
	}
	if raw, ok := node[headerKeyword]; ok {
		if err := c.add(raw, node["type"], path); err != nil {
			return err
		}
	}
	for keyword, sub := range node {
		if keyword != "properties" && keyword != headerKeyword && strings.Contains(string(sub), `"`+headerKeyword+`"`) {
			return fmt.Errorf("%s at /%s is below %q: only properties may lead to it", headerKeyword, strings.Join(path, "/"), keyword)
		}
	}
	var properties map[string]json.RawMessage
	if node["properties"] == nil || unmarshal(node["properties"], &properties) != nil {
		return nil //nolint:nilerr // whether it is a schema others say
	}
	for _, name := range sortedKeys(properties) {
		if err := c.object(properties[name], append(slices.Clip(path), name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *headerCollector) add(raw, kind json.RawMessage, path []string) error {
	at := "/" + strings.Join(path, "/")
	var name, typ string
	if unmarshal(raw, &name) != nil || !isHeaderToken(name) {
		return fmt.Errorf("%s at %s is %s: it must be a header token", headerKeyword, at, raw)
	}
	if _ = unmarshal(kind, &typ); typ != "string" && typ != "integer" && typ != "boolean" {
		return fmt.Errorf("%s at %s: the property must be of type string, integer or boolean, not %s", headerKeyword, at, kind)
	}
	key := canonicalHeader("Mcp-Param-" + name)
	if slices.ContainsFunc(c.found, func(p paramHeader) bool { return p.key == key }) {
		return fmt.Errorf("%s %q at %s stands twice in one schema", headerKeyword, name, at)
	}
	c.found = append(c.found, paramHeader{key, path, typ})
	return nil
}

// canonicalHeader is what net/textproto makes of a token.
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

// headerChecker refuses calls whose headers do not say what their arguments say.
// It sits at the tool, where the schema is known however the call got there.
type headerChecker struct {
	Handler
	entry *entry
}

func (h headerChecker) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	if len(h.entry.headers) > 0 && req.Header != nil && req.IsModern() {
		for _, p := range h.entry.headers {
			if err := p.check(req); err != nil {
				return nil, err
			}
		}
	}
	return h.Handler.ServeMCP(ctx, req)
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
		if string(want) == `""` {
			return nil // an empty value may be left out
		}
		return headerMismatch(p.key, "the header is missing")
	case len(values) > 1:
		return headerMismatch(p.key, "the header stands more than once")
	}
	text, err := DecodeHeaderValue(values[0])
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

func (p *paramHeader) equal(text string, argument json.RawMessage) bool {
	switch {
	case argument[0] == '"':
		return text == string(jsonscan.Unquote(argument))
	case text == string(argument):
		return true
	case p.kind != "integer" || len(text) > 40 || len(argument) > 40 || !plainNumber().MatchString(text) || !plainNumber().Match(argument):
		return false
	}
	a, okA := decimal.Parse(text)
	b, okB := decimal.Parse(string(argument))
	return okA && okB && a == b
}

// argumentAt is the value at a path of members, nil if it is absent or null.
func argumentAt(value json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		value = memberOf(value, name)
	}
	if string(value) == "null" {
		return nil
	}
	return value
}

func memberOf(object json.RawMessage, name string) json.RawMessage {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	s := jsonscan.Get(object, 0)
	defer s.Release()
	s.Object()
	for s.Member() {
		if string(s.Name()) == name {
			return s.Value()
		}
		s.Skip()
	}
	return nil
}

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// EncodeHeaderValue makes text fit for the value of an Mcp-Name or Mcp-Param
// header: as it is, or, if it has anything but visible ASCII and inner spaces,
// as base64 between markers (transports/streamable-http).
func EncodeHeaderValue(text string) string {
	plain := strings.TrimSpace(text) == text && (!strings.HasPrefix(text, encodedPrefix) || !strings.HasSuffix(text, encodedSuffix))
	for i := 0; plain && i < len(text); i++ {
		plain = text[i] >= 0x20 && text[i] < 0x7f
	}
	if plain {
		return text
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(text)) + encodedSuffix
}

// DecodeHeaderValue is the inverse of [EncodeHeaderValue].
func DecodeHeaderValue(value string) (string, error) {
	inner, ok := strings.CutPrefix(value, encodedPrefix)
	if ok {
		inner, ok = strings.CutSuffix(inner, encodedSuffix)
	}
	if !ok {
		return value, nil
	}
	text, err := base64.StdEncoding.Strict().DecodeString(inner)
	if err != nil || strings.ContainsAny(inner, "\r\n") { // which the decoder would pass over
		return "", errors.New("the value is not valid base64")
	}
	return string(text), nil
}

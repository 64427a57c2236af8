// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	jsonv1 "encoding/json"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/validator"
)

// maxFailures bounds what is remembered of one value. What goes beyond is counted,
// so that a long array of wrong items costs no more than a short one.
const maxFailures = 256

// checkSubset returns the validator for a document of the subset (see buildProof).
func checkSubset(document any, opts *Options, formats map[string]func([]byte) bool) validator.Validate {
	return func(value any) *validator.Failure {
		c := checker{document: document, nullAbsent: opts.OptionalNull, formats: formats, patterns: map[string]*regexp.Regexp{}, left: maxFailures}
		failure := c.check(place{schema: document}, value)
		if failure != nil {
			failure.More = c.more
		}
		return failure
	}
}

// A checker holds one value, as a tree, against a schema of the subset, and says
// all that is wrong with it.
type checker struct {
	document   any
	nullAbsent bool // Options.OptionalNull
	formats    map[string]func([]byte) bool
	patterns   map[string]*regexp.Regexp
	at         []string // of the value that is looked at
	left, more int      // failures that may still be kept, and how many were not
}

// A place is a schema and where in the document it is.
type place struct {
	tokens []string
	schema any
}

// keyword returns the value of a keyword, nil if the schema does not have it.
func (p place) keyword(name string) any {
	obj, _ := p.schema.(map[string]any)
	return obj[name]
}

// under returns the place of what the schema has under tokens.
func (p place) under(schema any, tokens ...string) place {
	return place{append(slices.Clip(p.tokens), tokens...), schema}
}

// uncounted stands for every failure that is not kept.
var uncounted = &validator.Failure{}

// fail keeps a failure of the value that is looked at, or counts it.
func (c *checker) fail(p place, f *validator.Failure) *validator.Failure {
	if c.left--; c.left < 0 {
		c.more++
		return uncounted
	}
	f.Schema, f.At = p.tokens, slices.Clone(c.at)
	return f
}

// A bracket collects failures of one value.
type bracket struct {
	failed bool
	causes []*validator.Failure
}

func (b *bracket) add(f *validator.Failure) {
	b.failed = b.failed || f != nil
	if f != nil && f != uncounted {
		b.causes = append(b.causes, f)
	}
}

func (b *bracket) failure() *validator.Failure {
	switch {
	case !b.failed:
		return nil
	case len(b.causes) == 0:
		return uncounted
	}
	return &validator.Failure{Causes: b.causes}
}

// check is where every value comes by. References and null or else this, which
// lead to another schema for the same value, end: buildProof has seen to that.
func (c *checker) check(p place, value any) *validator.Failure {
	if p.schema == false {
		return c.fail(p, &validator.Failure{Keyword: "false"})
	}
	if ref, ok := p.keyword("$ref").(string); ok {
		pointer, _ := localRef(ref)
		tokens := splitPointer(pointer)
		target, _ := lookup(c.document, tokens)
		return c.check(place{tokens, target}, value)
	}
	if list, ok := p.keyword("anyOf").([]any); ok && constants(list) == nil {
		return c.nullable(p, list, value)
	}
	if f := c.whole(p, value); f != nil {
		return f
	}
	var b bracket
	switch v := value.(type) {
	case map[string]any:
		c.object(&b, p, v)
	case []any:
		c.array(&b, p, v)
	case string:
		c.text(&b, p, v)
	case jsonv1.Number:
		c.number(&b, p, v)
	}
	b.add(c.choice(p, "anyOf", value))
	b.add(c.choice(p, "oneOf", value))
	return b.failure()
}

// choice is for anyOf and oneOf of constants, as lists of values with titles are
// written.
func (c *checker) choice(p place, keyword string, value any) *validator.Failure {
	want := constants(listOf(p.keyword(keyword)))
	if want == nil || slices.ContainsFunc(want, func(w any) bool { return equal(value, w) }) {
		return nil
	}
	f := c.fail(p, &validator.Failure{Keyword: keyword})
	for _, w := range want {
		if f != uncounted { // they count as one
			f.Causes = append(f.Causes, &validator.Failure{Keyword: "const", At: f.At, Want: []any{w}, Got: value})
		}
	}
	return f
}

// nullable is for anyOf of a schema and null.
func (c *checker) nullable(p place, list []any, value any) *validator.Failure {
	if value == nil {
		return nil
	}
	refused := c.check(p.under(list[0], "anyOf", "0"), value)
	if refused == nil || refused == uncounted {
		return refused
	}
	at := slices.Clone(c.at) // only what the value has been refused for counts
	null := &validator.Failure{Keyword: "type", At: at, Want: []string{"null"}}
	return &validator.Failure{Keyword: "anyOf", Schema: p.tokens, At: at, Causes: []*validator.Failure{refused, null}}
}

// whole is for the keywords of which one that fails makes the others pointless.
func (c *checker) whole(p place, value any) *validator.Failure {
	if want := p.keyword("type"); want != nil && !hasType(value, want) {
		return c.fail(p, &validator.Failure{Keyword: "type", Want: sortedTypes(want)})
	}
	obj, _ := p.schema.(map[string]any)
	if want, given := obj["const"]; given && !equal(value, want) {
		return c.fail(p, &validator.Failure{Keyword: "const", Want: []any{want}, Got: value})
	}
	if want, given := obj["enum"].([]any); given && !slices.ContainsFunc(want, func(w any) bool { return equal(value, w) }) {
		return c.fail(p, &validator.Failure{Keyword: "enum", Want: want, Got: value})
	}
	format, _ := obj["format"].(string)
	text, isText := value.(string)
	if holds := c.formats[format]; holds != nil && isText && !holds([]byte(text)) {
		return c.fail(p, &validator.Failure{Keyword: "format", Want: format})
	}
	return nil
}

func (c *checker) object(b *bracket, p place, obj map[string]any) {
	required := stringsOf(listOf(p.keyword("required")))
	var missing, unknown []string
	for _, name := range required {
		if _, there := obj[name]; !there {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		b.add(c.fail(p, &validator.Failure{Keyword: "required", Names: missing}))
	}
	props, _ := p.keyword("properties").(map[string]any)
	others := p.keyword("additionalProperties")
	for _, name := range sortedKeys(obj) {
		schema, known := props[name]
		absent := c.nullAbsent && obj[name] == nil && !slices.Contains(required, name)
		switch {
		case known && (!absent || schema == false):
			b.add(c.member(p.under(schema, "properties", name), name, obj[name]))
		case !known && others == false:
			unknown = append(unknown, name)
		case !known && others != nil && !absent:
			b.add(c.member(p.under(others, "additionalProperties"), name, obj[name]))
		}
	}
	if unknown != nil {
		b.add(c.fail(p, &validator.Failure{Keyword: "additionalProperties", Names: unknown}))
	}
}

func (c *checker) member(p place, name string, value any) *validator.Failure {
	c.at = append(c.at, name)
	defer func() { c.at = c.at[:len(c.at)-1] }()
	return c.check(p, value)
}

func (c *checker) array(b *bracket, p place, list []any) {
	c.size(b, p, "minItems", "maxItems", len(list))
	if p.keyword("uniqueItems") == true {
		if i, j, found := duplicates(list); found {
			b.add(c.fail(p, &validator.Failure{Keyword: "uniqueItems", Got: [2]int{i, j}}))
		}
	}
	items := p.keyword("items")
	if items == nil {
		return
	}
	each := p.under(items, "items")
	for i, v := range list {
		b.add(c.member(each, strconv.Itoa(i), v))
	}
}

func (c *checker) text(b *bracket, p place, text string) {
	c.size(b, p, "minLength", "maxLength", utf8.RuneCountInString(text))
	if pattern, ok := p.keyword("pattern").(string); ok && !c.pattern(pattern).MatchString(text) {
		b.add(c.fail(p, &validator.Failure{Keyword: "pattern", Want: pattern}))
	}
}

// pattern returns an expression that is known to compile.
func (c *checker) pattern(text string) *regexp.Regexp {
	re := c.patterns[text]
	if re == nil {
		re = regexp.MustCompile(text)
		c.patterns[text] = re
	}
	return re
}

// size holds a length against its bounds.
func (c *checker) size(b *bracket, p place, least, most string, got int) {
	if want, ok := sizeOf(p.keyword(least)); ok && got < want {
		b.add(c.fail(p, &validator.Failure{Keyword: least, Want: want, Got: got}))
	}
	if want, ok := sizeOf(p.keyword(most)); ok && got > want {
		b.add(c.fail(p, &validator.Failure{Keyword: most, Want: want, Got: got}))
	}
}

// numberKeywords are the bounds of a number, each with what a comparison to it
// must not result in.
var numberKeywords = []struct {
	name string
	bad  func(order int) bool
}{
	{"minimum", func(order int) bool { return order < 0 }},
	{"maximum", func(order int) bool { return order > 0 }},
	{"exclusiveMinimum", func(order int) bool { return order <= 0 }},
	{"exclusiveMaximum", func(order int) bool { return order >= 0 }},
}

func (c *checker) number(b *bracket, p place, n jsonv1.Number) {
	got := exact(n)
	for _, k := range numberKeywords {
		if bound, ok := p.keyword(k.name).(jsonv1.Number); ok && k.bad(got.Compare(exact(bound))) {
			b.add(c.fail(p, &validator.Failure{Keyword: k.name, Want: exact(bound).String()}))
		}
	}
	if factor, ok := p.keyword("multipleOf").(jsonv1.Number); ok && !got.IsMultipleOf(exact(factor)) {
		b.add(c.fail(p, &validator.Failure{Keyword: "multipleOf", Want: exact(factor).String()}))
	}
}

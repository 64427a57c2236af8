// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"bytes"
	"context"
	jsonv1 "encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/jsonscan"
)

// A node is a schema in a form that can be checked against the bytes of a value in one
// pass. If the check succeeds, the value is valid. Otherwise it may still be valid: the
// validator decides rare and complicated cases, and explains problems. Schemas outside the
// provable subset (see buildProof) have no node.
type node struct {
	nullOr *node // if set, null and this are allowed, and the other fields are unused
	types  typeSet
	enum   []constant

	// For strings.
	minLength, maxLength int // maxLength is -1 if unlimited
	pattern              *pattern
	format               func([]byte) bool

	// For numbers.
	minimum, maximum, above, below *bound
	multipleOf                     int64 // 0 if absent
	fraction                       bool  // multipleOf is a fraction, which is left to the validator

	// For arrays.
	items              *node
	minItems, maxItems int // maxItems is -1 if unlimited
	unique             bool

	// For objects.
	properties []property
	index      map[string]int // into properties, if there are many
	required   uint64         // the bits of all required properties
	others     *node          // schema of other properties, nil if not allowed
	nullAbsent bool           // Options.OptionalNull
}

type property struct {
	name string
	node *node
	bit  uint64 // 0 for an optional property
}

type typeSet uint8

const (
	nullSet typeSet = 1 << iota
	booleanSet
	integerSet // numbers that are integers
	numberSet  // all numbers
	stringSet
	arraySet
	objectSet
	everySet = nullSet | booleanSet | integerSet | numberSet | stringSet | arraySet | objectSet
)

var typeSets = map[string]typeSet{
	"null": nullSet, "boolean": booleanSet, "integer": integerSet, "number": numberSet | integerSet,
	"string": stringSet, "array": arraySet, "object": objectSet,
}

// proves reports whether data is proved to be valid.
func (s *Schema) proves(ctx context.Context, data []byte) bool {
	if s.proof == nil {
		return false
	}
	scan := prover{jsonscan.Get(data, maxInputDepth), budgetOf(ctx, s.maxWork)}
	defer scan.Release()
	return s.proof.proves(&scan) && scan.End() == nil
}

// A prover scans a value. It gives up if the proof takes too much work.
type prover struct {
	*jsonscan.Scanner
	budget budget
}

// affords reports whether the budget allows more work.
func (p *prover) affords(work int) bool { return p.budget.spend(work) == nil }

// proves consumes the next value of scan and reports whether it is valid. If it returns
// false, the scanner must not be used again.
func (n *node) proves(scan *prover) bool {
	kind := scan.Kind()
	if n.nullOr != nil {
		if kind != 'n' {
			return n.nullOr.proves(scan)
		}
		scan.Skip()
		return true
	}
	switch kind {
	case '{':
		return n.types&objectSet != 0 && n.enum == nil && n.provesObject(scan)
	case '[':
		return n.types&arraySet != 0 && n.enum == nil && n.provesArray(scan)
	case '"':
		raw := scan.Value()
		return raw != nil && n.types&stringSet != 0 && n.provesString(scan, raw)
	case '0':
		raw := scan.Value()
		return raw != nil && scan.affords(len(n.enum)/16) && n.provesNumber(raw)
	case 't', 'f':
		raw := scan.Value()
		return raw != nil && n.types&booleanSet != 0 && n.provesLiteral(raw)
	case 'n':
		scan.Skip()
		return n.admitsNull()
	}
	return false
}

// admitsNull reports whether null is valid.
func (n *node) admitsNull() bool {
	return n.nullOr != nil || n.types&nullSet != 0 && n.provesLiteral([]byte("null"))
}

// provesLiteral checks true, false or null.
func (n *node) provesLiteral(raw []byte) bool {
	return n.enum == nil || slices.ContainsFunc(n.enum, func(c constant) bool {
		return c.literal != "" && c.literal == string(raw)
	})
}

func (n *node) provesArray(scan *prover) bool {
	length := 0
	for ok := scan.Array() && scan.Element(); ok; ok = scan.Element() {
		if !n.items.proves(scan) {
			return false
		}
		length++
	}
	return length >= n.minItems && (n.maxItems < 0 || length <= n.maxItems) && (!n.unique || length < 2)
}

func (n *node) provesObject(scan *prover) bool {
	var seen uint64
	for ok := scan.Object() && scan.Member(); ok; ok = scan.Member() {
		value, bit := n.others, uint64(0)
		if p := n.find(scan.Name()); p != nil {
			value, bit = p.node, p.bit
		}
		switch {
		case value == nil:
			return false
		case n.nullAbsent && bit == 0 && scan.Kind() == 'n':
			scan.Skip() // allowed, or treated as absent
		case !value.proves(scan):
			return false
		}
		seen |= bit
	}
	return seen == n.required
}

// manyProperties is the number of properties from which a map is faster than a linear search.
const manyProperties = 8

// find returns the named property, or nil.
func (n *node) find(name []byte) *property {
	if n.index != nil {
		if i, ok := n.index[string(name)]; ok {
			return &n.properties[i]
		}
		return nil
	}
	for i := range n.properties {
		if n.properties[i].name == string(name) {
			return &n.properties[i]
		}
	}
	return nil
}

func (n *node) provesString(scan *prover, raw []byte) bool {
	if n.enum == nil && n.minLength <= 0 && n.maxLength < 0 && n.pattern == nil && n.format == nil {
		return true
	}
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		text = jsonscan.Unquote(raw)
	}
	return n.provesLength(text) && scan.affords(len(n.enum)/64) &&
		(n.pattern == nil || scan.affords(n.pattern.cost(len(text))) && n.pattern.Match(text)) &&
		(n.format == nil || n.format(text)) &&
		(n.enum == nil || slices.ContainsFunc(n.enum, func(c constant) bool {
			return c.isText && c.text == string(text)
		}))
}

// A constant is one allowed value. The constant of an object or array matches nothing.
type constant struct {
	literal string // true, false or null
	isText  bool
	text    string
	number  *bound
}

func newConstant(v any) constant {
	switch v := v.(type) {
	case nil:
		return constant{literal: "null"}
	case bool:
		return constant{literal: strconv.FormatBool(v)}
	case string:
		return constant{isText: true, text: v}
	case jsonv1.Number:
		return constant{number: newBound(v)}
	}
	return constant{}
}

// provesLength checks the length in characters, counting them only if necessary.
func (n *node) provesLength(text []byte) bool {
	if n.minLength <= 0 && n.maxLength < 0 {
		return true
	}
	length := utf8.RuneCount(text)
	return length >= n.minLength && (n.maxLength < 0 || length <= n.maxLength)
}

// A bound is a minimum or maximum.
type bound struct {
	text  string
	whole int64 // if isInt
	isInt bool
	near  float64 // nearest float
}

func newBound(n jsonv1.Number) *bound {
	b := &bound{text: n.String()}
	b.whole, b.isInt = wholeNumber([]byte(b.text))
	b.near, _ = strconv.ParseFloat(b.text, 64)
	return b
}

// compare compares raw with b. ok is false if the order is uncertain. Two integers are
// compared exactly. Other numbers are compared as floats, which must differ: rounding can
// make numbers equal, but preserves their order.
func (b *bound) compare(raw []byte) (order int, ok bool) {
	if whole, isInt := wholeNumber(raw); isInt && b.isInt {
		switch {
		case whole < b.whole:
			return -1, true
		case whole > b.whole:
			return +1, true
		}
		return 0, true
	}
	if string(raw) == b.text {
		return 0, true
	}
	near, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case err != nil || near == b.near:
		return 0, false
	case near < b.near:
		return -1, true
	}
	return +1, true
}

// wholeNumber parses an integer without a fraction or exponent.
func wholeNumber(raw []byte) (n int64, ok bool) {
	const maxDigits = 18 // always fit in an int64
	digits, negative := bytes.CutPrefix(raw, []byte("-"))
	if len(digits) == 0 || len(digits) > maxDigits {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// isWhole reports whether raw is certainly an integer. In JSON Schema, 1.0 is an integer.
func isWhole(raw []byte) bool {
	if bytes.ContainsAny(raw, "eE") {
		return false
	}
	_, fraction, _ := bytes.Cut(raw, []byte("."))
	return len(bytes.Trim(fraction, "0")) == 0
}

func (n *node) provesNumber(raw []byte) bool {
	switch {
	case !reasonableNumber(raw):
		return false
	case n.types&numberSet != 0:
	case n.types&integerSet == 0 || !isWhole(raw):
		return false
	}
	return n.provesRange(raw) && n.provesMultiple(raw) && n.provesNumberEnum(raw)
}

func (n *node) provesRange(raw []byte) bool {
	holds := func(b *bound, good func(order int) bool) bool {
		if b == nil {
			return true
		}
		order, ok := b.compare(raw)
		return ok && good(order)
	}
	return holds(n.minimum, func(o int) bool { return o >= 0 }) &&
		holds(n.maximum, func(o int) bool { return o <= 0 }) &&
		holds(n.above, func(o int) bool { return o > 0 }) &&
		holds(n.below, func(o int) bool { return o < 0 })
}

func (n *node) provesMultiple(raw []byte) bool {
	if n.multipleOf == 0 {
		return !n.fraction
	}
	whole, ok := wholeNumber(raw)
	return ok && whole%n.multipleOf == 0
}

func (n *node) provesNumberEnum(raw []byte) bool {
	if n.enum == nil {
		return true
	}
	for _, c := range n.enum {
		if c.number == nil {
			continue
		}
		if order, ok := c.number.compare(raw); ok && order == 0 {
			return true
		}
	}
	return false
}

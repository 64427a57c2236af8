// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"bytes"
	jsonv1 "encoding/json"
	"strconv"
	"unicode/utf8"
)

// A constant is one allowed value. Objects and arrays match nothing.
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

// provesLength counts characters, not bytes, and only where it must.
func (n *node) provesLength(text []byte) bool {
	if n.minLength <= 0 && n.maxLength < 0 {
		return true
	}
	length := utf8.RuneCount(text)
	return length >= n.minLength && (n.maxLength < 0 || length <= n.maxLength)
}

// A bound is a number that others are compared with.
type bound struct {
	text  string
	whole int64 // if isInt
	isInt bool
	near  float64 // the nearest float
}

func newBound(n jsonv1.Number) *bound {
	b := &bound{text: n.String()}
	b.whole, b.isInt = wholeNumber([]byte(b.text))
	b.near, _ = strconv.ParseFloat(b.text, 64)
	return b
}

// compare orders raw and b, or reports false if it cannot tell. Two integers
// are compared exactly. Otherwise floats decide, but only when they differ:
// rounding keeps the order of numbers except that it can make them equal.
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

// wholeNumber reads an integer written without fraction or exponent.
func wholeNumber(raw []byte) (n int64, ok bool) {
	const maxDigits = 18 // always fit
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

// isWhole reports whether raw is certainly an integer. To JSON Schema 1.0 is one.
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

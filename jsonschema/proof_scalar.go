// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"bytes"
	jsonv1 "encoding/json"
	"strconv"
	"time"
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
		return true
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

// never is for what the proof does not decide.
func never([]byte) bool { return false }

// isDate recognizes YYYY-MM-DD.
func isDate(text []byte) bool {
	if len(text) != len(time.DateOnly) || text[4] != '-' || text[7] != '-' {
		return false
	}
	year, ok1 := digits(text[:4])
	month, ok2 := digits(text[5:7])
	day, ok3 := digits(text[8:])
	if !ok1 || !ok2 || !ok3 || month < 1 || month > 12 || day < 1 {
		return false
	}
	return day <= time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// isDateTime recognizes the dates and times of RFC 3339 in their usual spelling,
// without leap seconds.
func isDateTime(text []byte) bool {
	const clock = "15:04:05"
	if len(text) < len("2006-01-02T15:04:05Z") || text[10] != 'T' || !isDate(text[:10]) {
		return false
	}
	if !isClock(text[11:16]) || text[16] != ':' {
		return false
	}
	if sec, ok := digits(text[17:19]); !ok || sec > 59 {
		return false
	}
	return isZone(withoutFraction(text[11+len(clock):]))
}

func isClock(text []byte) bool {
	hour, ok1 := digits(text[:2])
	minute, ok2 := digits(text[3:])
	return ok1 && ok2 && text[2] == ':' && hour < 24 && minute < 60
}

// withoutFraction removes a fraction of a second from the start of text.
func withoutFraction(text []byte) []byte {
	if len(text) == 0 || text[0] != '.' {
		return text
	}
	rest := bytes.TrimLeft(text[1:], "0123456789")
	if len(rest) == len(text)-1 {
		return text
	}
	return rest
}

func isZone(text []byte) bool {
	if len(text) == 1 {
		return text[0] == 'Z'
	}
	return len(text) == len("+01:00") && (text[0] == '+' || text[0] == '-') && isClock(text[1:])
}

func digits(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

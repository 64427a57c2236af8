// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"bytes"
	jsonv1 "encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/schematree"
	"github.com/go-psi/psi/internal/strictjson"
)

// Numbers are compared as exact fractions. These limits keep one number from expanding to a
// gigabyte of digits.
const (
	maxNumberLen = 1000
	maxExponent  = 1000
)

// A treeError is the reason why a value could not be decoded.
type treeError struct {
	pointer string // of the invalid value, "" if unknown
	reason  string
}

func (e *treeError) Error() string {
	if e.pointer == "" {
		return e.reason
	}
	return e.pointer + ": " + e.reason
}

// readTree decodes data into nil, bool, json.Number, string, []any and map[string]any. It
// rejects data that is nested deeper than maxDepth or has more than maxNodes values.
func readTree(data []byte, maxDepth, maxNodes int) (any, *treeError) {
	r := treeReader{scan: jsonscan.Get(data, maxDepth), nodes: maxNodes}
	defer r.scan.Release()
	v := r.value()
	if r.err != nil {
		return nil, r.err
	}
	if err := r.scan.End(); err != nil {
		return nil, &treeError{reason: syntaxText(err)}
	}
	return v, nil
}

func syntaxText(err error) string {
	if syntax, ok := errors.AsType[*jsonscan.SyntaxError](err); ok && strings.HasPrefix(syntax.What, "nested deeper") {
		return syntax.What
	}
	return "not well-formed JSON: " + err.Error()
}

type treeReader struct {
	scan  *jsonscan.Scanner
	nodes int // that are still allowed
	err   *treeError
}

func (r *treeReader) value() any {
	if r.nodes--; r.nodes < 0 {
		r.fail("more values than allowed")
		return nil
	}
	switch r.scan.Kind() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		if quoted := r.scan.Value(); quoted != nil {
			return jsonscan.Text(quoted)
		}
	case '0':
		return r.number(r.scan.Value())
	case 't', 'f':
		return bytes.Equal(r.scan.Value(), []byte("true"))
	default: // null, or an error that End returns
		r.scan.Skip()
	}
	return nil
}

func (r *treeReader) object() any {
	obj := map[string]any{}
	for ok := r.scan.Object() && r.scan.Member(); ok; ok = r.scan.Member() {
		name := string(r.scan.Name())
		v := r.value()
		if r.err != nil {
			r.err.pointer = "/" + schematree.Escape(name) + r.err.pointer
			return nil
		}
		obj[name] = v
	}
	return obj
}

func (r *treeReader) array() any {
	list := []any{}
	for ok := r.scan.Array() && r.scan.Element(); ok; ok = r.scan.Element() {
		v := r.value()
		if r.err != nil {
			r.err.pointer = "/" + strconv.Itoa(len(list)) + r.err.pointer
			return nil
		}
		list = append(list, v)
	}
	return list
}

func (r *treeReader) number(text []byte) any {
	if !reasonableNumber(text) {
		r.fail(fmt.Sprintf("a number of more than %d digits or an exponent beyond %d is not supported", maxNumberLen, maxExponent))
	}
	return jsonv1.Number(text)
}

func (r *treeReader) fail(reason string) {
	if r.err == nil {
		r.err = &treeError{reason: reason}
	}
}

func reasonableNumber(text []byte) bool {
	if len(text) > maxNumberLen {
		return false
	}
	i := bytes.IndexAny(text, "eE")
	if i < 0 {
		return true
	}
	exp, err := strconv.Atoi(string(text[i+1:]))
	return err == nil && math.Abs(float64(exp)) <= maxExponent
}

// unbounded is a node limit for trees that are limited only by the length of their text.
const unbounded = math.MaxInt

// exact returns the value of a number read by readTree.
func exact(n jsonv1.Number) strictjson.Decimal {
	d, _ := strictjson.ParseDecimal(n.String())
	return d
}

// repeats reports whether two of the values are equal.
func repeats(values []any) bool {
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		seen[string(appendKey(nil, v))] = true
	}
	return len(seen) < len(values)
}

// appendKey appends an encoding of v that is the same for equal values.
func appendKey(to []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(to, v)
	case jsonv1.Number:
		return append(to, exact(v).String()...)
	case string:
		return jsonscan.AppendString(to, v)
	case []any:
		to = append(to, '[')
		for _, item := range v {
			to = append(appendKey(to, item), ',')
		}
		return append(to, ']')
	case map[string]any:
		to = append(to, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			to = append(jsonscan.AppendString(to, name), ':')
			to = append(appendKey(to, v[name]), ',')
		}
		return append(to, '}')
	}
	return append(to, "null"...)
}

// constants returns the const of each schema, or nil if one has no const.
func constants(schemas []any) (values []any) {
	for _, schema := range schemas {
		obj, _ := schema.(map[string]any)
		value, ok := obj["const"]
		if !ok {
			return nil
		}
		values = append(values, value)
	}
	return values
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

func stringsOf(values []any) []string {
	var list []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

func typeList(types []string) string {
	switch len(types) {
	case 0:
		return "value"
	case 1:
		return types[0]
	}
	last := len(types) - 1
	return strings.Join(types[:last], ", ") + " or " + types[last]
}

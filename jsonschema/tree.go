// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"bytes"
	jsonv1 "encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
)

// Numbers are compared as exact fractions. These bounds keep one number from
// becoming a gigabyte of digits.
const (
	maxNumberLen = 1000
	maxExponent  = 1000
)

// A treeError is why bytes did not become a tree.
type treeError struct {
	pointer string // of the value that is at fault; "" also if that is not known
	reason  string
}

func (e *treeError) Error() string {
	if e.pointer == "" {
		return e.reason
	}
	return e.pointer + ": " + e.reason
}

// readTree decodes data into nil, bool, json.Number, string, []any and
// map[string]any, at most maxDepth deep and of at most maxNodes values.
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
	nodes int // left
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
			return string(jsonscan.Unquote(quoted))
		}
	case '0':
		return r.number(r.scan.Value())
	case 't', 'f':
		return bytes.Equal(r.scan.Value(), []byte("true"))
	default: // null, or an error of which End will tell
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
			r.err.pointer = "/" + escapeToken(name) + r.err.pointer
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

// unbounded is for trees whose size is limited by their bytes alone.
const unbounded = math.MaxInt

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/schematree"
)

// maxMendRounds limits how often a value is changed and validated again. A value with more
// than maxProblems problems, or with problems inside changed parts, needs several rounds.
const maxMendRounds = 8

// Mend validates data as [Schema.Validate] does. If data is invalid, Mend fixes common
// mistakes of clients and models: it removes properties that are not allowed, and replaces
// a string that contains the JSON of an expected type, such as "7" or "[1,2]", with the
// value. It returns the valid value and JSON pointers to what it changed, which are nil if
// data was valid. If the result is still invalid, Mend returns the error of Validate.
func (s *Schema) Mend(ctx context.Context, data []byte) (mended []byte, changed []string, err error) {
	s.mustBeMade()
	first := s.Validate(ctx, data)
	if first == nil {
		return data, nil, nil
	}
	tree, terr := readTree(data, maxInputDepth, unbounded)
	if terr != nil {
		return nil, nil, first
	}
	err = first
	for round := 0; err != nil; round++ {
		invalid, ok := errors.AsType[*ValidationError](err)
		if !ok || round == maxMendRounds {
			return nil, nil, first
		}
		before := len(changed)
		for _, p := range invalid.Problems {
			if mendProblem(tree, p) {
				changed = append(changed, p.Pointer)
			}
		}
		if len(changed) == before {
			return nil, nil, first
		}
		if data, err = marshal(tree); err != nil {
			return nil, nil, first
		}
		err = s.Validate(ctx, data)
	}
	return data, changed, nil
}

// mendProblem fixes the value that p describes, and reports whether it could. Coercing before
// validation was rejected, because "7" is valid where a string is expected.
func mendProblem(tree any, p Problem) bool {
	tokens := schematree.Split(p.Pointer)
	if len(tokens) == 0 {
		return false
	}
	last := tokens[len(tokens)-1]
	parent, _ := schematree.Lookup(tree, tokens[:len(tokens)-1])
	if obj, ok := parent.(map[string]any); ok {
		if p.Keyword == "additionalProperties" {
			_, there := obj[last]
			delete(obj, last)
			return there
		}
		value, ok := unquoted(obj[last], p.Expected)
		if ok {
			obj[last] = value
		}
		return ok
	}
	list, _ := parent.([]any)
	i, err := strconv.Atoi(last)
	if err != nil || i < 0 || i >= len(list) {
		return false
	}
	value, ok := unquoted(list[i], p.Expected)
	if ok {
		list[i] = value
	}
	return ok
}

// unquoted decodes the JSON in the string v. It returns false unless the value has one of
// the expected types.
func unquoted(v any, expected string) (any, bool) {
	text, ok := v.(string)
	if !ok {
		return nil, false
	}
	value, terr := readTree([]byte(text), maxInputDepth, unbounded)
	if terr != nil {
		return nil, false
	}
	kind, _, _ := strings.Cut(describeValue(value), " ")
	types := strings.FieldsFunc(expected, func(r rune) bool { return r == ' ' || r == ',' })
	return value, kind != "string" && (slices.Contains(types, kind) || kind == "number" && slices.Contains(types, "integer"))
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package strictjson

import (
	"errors"
	"fmt"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Problem describes to a peer why its value could not be decoded, without names of Go
// types: a JSON pointer, and what was there or the error of a type's decoder.
func Problem(err error) string {
	var semantic *jsonv2.SemanticError
	if !errors.As(err, &semantic) {
		return "malformed"
	}
	where := string(semantic.JSONPointer)
	if where == "" {
		where = "the value itself"
	}
	switch why := semantic.Err; {
	case errors.Is(why, strconv.ErrRange):
		return where + " is out of range"
	case errors.Is(why, strconv.ErrSyntax) && semantic.JSONKind == '0':
		return where + " must be an integer"
	case why != nil:
		return fmt.Sprintf("%s: %v", where, why)
	}
	if kind := semantic.JSONKind; kind != 0 {
		return fmt.Sprintf("%s must not be a JSON %s", where, nameOf(kind))
	}
	return where + " does not fit"
}

// nameOf returns the name of a kind of JSON value.
func nameOf(kind jsontext.Kind) string {
	switch kind {
	case '{':
		return "object"
	case '[':
		return "array"
	}
	return kind.String()
}

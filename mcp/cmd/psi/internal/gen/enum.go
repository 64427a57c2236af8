// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// An enumType is a string type with constants.
type enumType struct {
	name, doc string
	values    []string
	constants []string // the names of the values
}

func (e *enumType) write(to *strings.Builder) {
	to.WriteByte('\n')
	writeComment(to, "", e.doc)
	to.WriteString("type " + e.name + " string\n\n")
	writeComment(to, "", "The values of "+e.name+".")
	to.WriteString("const (\n")
	for i, value := range e.values {
		to.WriteString("\t" + e.constants[i] + " " + e.name + " = " + strconv.Quote(value) + "\n")
	}
	to.WriteString(")\n")
}

// enum returns the type of a schema that enumerates its values.
func (r *reader) enum(s *object, pointer string, name typeName) goType {
	if value, ok := s.values["const"]; ok {
		return r.enumOf([]any{value}, s, pointer, name)
	}
	return r.enumOf(s.list("enum"), s, pointer, name)
}

func (r *reader) enumOf(values []any, s *object, pointer string, name typeName) goType {
	nullable := slices.Contains(values, nil)
	values = slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == nil })
	if len(values) == 0 {
		return r.anyType("")
	}
	var texts []string
	seen := map[string]bool{}
	for _, v := range values {
		text, ok := v.(string)
		if !r.g.spend(visitCost + 2*len(text)) {
			return r.anyType("")
		}
		if ok && !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	t := r.scalarOf(values, s)
	if t.text == "string" {
		t = r.declareEnum(texts, pointer, name)
	}
	t.nullable = nullable || slices.Contains(s.strings("type"), "null")
	return t
}

// scalarOf returns the type of non-null values. It is string only if all of them are
// strings.
func (r *reader) scalarOf(values []any, s *object) goType {
	all := func(is func(any) bool) bool {
		return !slices.ContainsFunc(values, func(v any) bool { return !is(v) })
	}
	allowed := oneOf(values)
	switch {
	case all(func(v any) bool { _, ok := v.(string); return ok }):
		return goType{text: "string"}
	case all(func(v any) bool { _, ok := v.(bool); return ok }):
		return goType{text: "bool", note: allowed}
	case all(isInteger):
		return goType{text: "int64", note: allowed}
	case all(func(v any) bool { _, ok := v.(json.Number); return ok }):
		return goType{text: "float64", note: allowed}
	}
	t := r.anyType(allowed)
	t.nullable = slices.Contains(s.strings("type"), "null")
	return t
}

func isInteger(v any) bool {
	n, ok := v.(json.Number)
	_, err := strconv.ParseInt(n.String(), 10, 64)
	return ok && err == nil
}

// oneOf lists the allowed values for a comment.
func oneOf(values []any) string {
	const most = 20
	var list []string
	for _, v := range values {
		list = append(list, compact(v))
	}
	if len(list) == 1 {
		return sentence("It is " + list[0])
	}
	if len(list) > most {
		list = append(list[:most], "…")
	}
	return sentence("It is one of " + strings.Join(list, ", "))
}

func (r *reader) declareEnum(values []string, pointer string, name typeName) goType {
	e := &enumType{name: r.g.takeType(name), values: values}
	e.doc = e.name + " lists the values of a string in " + r.origin + "."
	for i, value := range values {
		constant := exported(value)
		if len(words(value)) == 0 {
			constant = "Value" + strconv.Itoa(i+1)
		}
		if value == "" {
			constant = "Empty"
		}
		e.constants = append(e.constants, r.g.names.take(e.name+constant))
	}
	r.g.decls = append(r.g.decls, e)
	t := goType{text: e.name}
	r.made[pointer] = t
	return t
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
)

// A field is an argument of a tool, or a field of a form.
type field struct {
	name     string
	schema   json.RawMessage
	required bool
}

// fieldsOf returns the properties of an object schema: required ones first, each group in
// schema order. A malformed schema, or one without properties, has no fields.
func fieldsOf(schema json.RawMessage) []field {
	var required []string
	_ = json.Unmarshal(jsonscan.Member(schema, "required"), &required) // a malformed list requires nothing
	var fields []field
	properties := jsonscan.Member(schema, "properties")
	if len(properties) == 0 || properties[0] != '{' {
		return nil
	}
	s := jsonscan.Get(properties, 0)
	defer s.Release()
	for s.Object(); s.Member(); {
		name := string(s.Name())
		fields = append(fields, field{name, slices.Clone(s.Value()), slices.Contains(required, name)})
	}
	slices.SortStableFunc(fields, func(a, b field) int {
		switch {
		case a.required == b.required:
			return 0
		case a.required:
			return -1
		}
		return 1
	})
	return fields
}

// keywords are the schema keywords that describe a field.
type keywords struct {
	Type        any               `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Format      string            `json:"format"`
	Default     json.RawMessage   `json:"default"`
	Enum        []json.RawMessage `json:"enum"`
	EnumNames   []string          `json:"enumNames"`
	OneOf       []choice          `json:"oneOf"`
	AnyOf       []choice          `json:"anyOf"`
	Items       json.RawMessage   `json:"items"`
	Minimum     json.Number       `json:"minimum"`
	Maximum     json.Number       `json:"maximum"`
	MinLength   json.Number       `json:"minLength"`
	MaxLength   json.Number       `json:"maxLength"`
}

// A choice is one of the values of a field.
type choice struct {
	Const json.RawMessage `json:"const"`
	Title string          `json:"title"`
}

// keywords decodes the schema. It ignores keywords of unexpected types.
func (f field) keywords() keywords {
	var k keywords
	_ = json.Unmarshal(f.schema, &k) // continues after a member of a wrong type
	return k
}

// kind returns the type of the field, or "" if there is none or more than one.
func (k *keywords) kind() string {
	kind, _ := k.Type.(string)
	return kind
}

// choices returns the values of a field, or of the elements of a list. It returns nil if
// any value is possible.
func (k *keywords) choices() []choice {
	if k.kind() == "array" {
		items := field{schema: k.Items}.keywords()
		return items.choices()
	}
	var list []choice
	for _, c := range slices.Concat(k.OneOf, k.AnyOf) {
		if c.Const == nil {
			return nil // not a list of constants
		}
		list = append(list, c)
	}
	for i, value := range k.Enum {
		c := choice{Const: value}
		if i < len(k.EnumNames) {
			c.Title = k.EnumNames[i]
		}
		list = append(list, c)
	}
	return list
}

// describe describes the field in one line: its type, what is allowed, and what it means.
func (f field) describe() string {
	k := f.keywords()
	kind := k.kind()
	if list, ok := k.Type.([]any); ok {
		kinds := make([]string, len(list))
		for i, v := range list {
			kinds[i] = fmt.Sprint(v)
		}
		kind = strings.Join(kinds, " or ")
	}
	words := []string{cmp.Or(kind, "any")}
	if k.Format != "" {
		words[0] += " (" + k.Format + ")"
	}
	if choices := k.choices(); len(choices) > 0 {
		values := make([]string, len(choices))
		for i, c := range choices {
			values[i] = plain(c.Const)
		}
		words = append(words, "one of "+strings.Join(values, ", "))
	}
	for _, bound := range []struct {
		name  string
		value json.Number
	}{{"at least", k.Minimum}, {"at most", k.Maximum}, {"min length", k.MinLength}, {"max length", k.MaxLength}} {
		if bound.value != "" {
			words = append(words, bound.name+" "+bound.value.String())
		}
	}
	if k.Default != nil {
		words = append(words, "default "+plain(k.Default))
	}
	if f.required {
		words = append(words, "required")
	}
	text := strings.Join(words, ", ")
	if about := cmp.Or(k.Description, k.Title); about != "" {
		text += ": " + about
	}
	return text
}

// plain returns a value as a user would write it: a string without quotes, or JSON.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/jsonschema"
)

// A textInput decodes values that are received as text, such as the arguments of prompts
// and the variables of templates, into a struct or a map.
type textInput struct {
	names    []string // in struct order; nil for a map
	fields   map[string]textField
	required []string
	open     bool // other names are allowed
	schema   *jsonschema.Schema
}

type textField struct {
	Type        textType          `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Format      string            `json:"format"`
	AnyOf       []textField       `json:"anyOf"` // for a pointer to an enum: the enum, and null
}

// A textType is the JSON type of a field. For a nullable field, it is the type of its
// values that are not null.
type textType string

func (t *textType) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		return unmarshal(data, (*string)(t))
	}
	var types []textType
	if err := unmarshal(data, &types); err != nil || len(types) != 2 || types[1] != "null" {
		return fmt.Errorf("a value of the types %s is not text", data)
	}
	*t = types[0]
	return nil
}

func newTextInput(t reflect.Type) (*textInput, error) {
	raw, err := jsonschema.ForType(t)
	if err != nil {
		return nil, err
	}
	var root struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	if err := unmarshal(raw, &root); err != nil || root.Type != "object" {
		return nil, fmt.Errorf("%v is neither a struct nor a map with string keys", t)
	}
	in := &textInput{fields: map[string]textField{}, required: root.Required, open: string(root.Additional) != "false"}
	in.names = memberNames(jsonscan.Member(raw, "properties"))
	for name, property := range root.Properties {
		var f textField
		err := unmarshal(property, &f)
		if len(f.AnyOf) == 2 && f.AnyOf[1].Type == "null" {
			f.Type, f.Enum = f.AnyOf[0].Type, f.AnyOf[0].Enum
		}
		if err != nil || f.Type == "object" || f.Type == "array" {
			return nil, fmt.Errorf("the field %q must be a string, a number or a boolean", name)
		}
		in.fields[name] = f
	}
	in.schema, err = jsonschema.Compile(raw, &jsonschema.Options{AssertFormats: true})
	return in, err
}

func memberNames(object json.RawMessage) []string {
	if object == nil {
		return nil
	}
	s := jsonscan.Get(object, 0)
	defer s.Release()
	var names []string
	s.Object()
	for s.Member() {
		names = append(names, string(s.Name()))
		s.Skip()
	}
	return names
}

// decode decodes values into dst. what describes values in errors, which are meant for the
// peer.
func (in *textInput) decode(ctx context.Context, what string, values map[string]string, dst any) error {
	for _, name := range in.required {
		if _, ok := values[name]; !ok {
			return Errorf(CodeInvalidParams, "%s: %q is missing", what, name)
		}
	}
	object := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		f, known := in.fields[name]
		if !known && !in.open {
			return Errorf(CodeInvalidParams, "%s: %q is not known; expected one of %s", what, name, strings.Join(in.names, ", "))
		}
		if values[name] == "" && known && !f.mayBeEmpty() && !slices.Contains(in.required, name) {
			continue // hosts send it for a field that their user has left empty
		}
		if len(object) > 1 {
			object = append(object, ',')
		}
		object = append(jsonscan.AppendString(object, name), ':')
		object = f.append(object, values[name])
	}
	object = append(object, '}')
	if err := in.schema.Validate(ctx, object); err != nil {
		// The validation error has one line per problem; error messages have a single line.
		return &Error{Code: CodeInvalidParams, Message: what + ": " + strings.ReplaceAll(err.Error(), "\n", "; "), Cause: err}
	}
	if err := decode(in.schema.WithDefaults(object), dst); err != nil {
		return Errorf(CodeInvalidParams, "%s", decodeProblem(what, err))
	}
	return nil
}

// mayBeEmpty reports whether the empty text is a value of the field: it is a string, without
// an enum or a format that excludes it.
func (f textField) mayBeEmpty() bool {
	isString := f.Type == "" || f.Type == "string"
	return isString && f.Format == "" && (f.Enum == nil || slices.ContainsFunc(f.Enum, func(v json.RawMessage) bool { return string(v) == `""` }))
}

// append appends text as a JSON value. If the field is not a string but text is not JSON, it
// appends a string, which the schema then rejects.
func (f textField) append(dst []byte, text string) []byte {
	if f.Type != "" && f.Type != "string" && jsonscan.Valid([]byte(text), 1) == nil {
		return append(dst, text...)
	}
	return jsonscan.AppendString(dst, text)
}

func (in *textInput) enumValues() map[string][]string {
	enums := map[string][]string{}
	for name, f := range in.fields {
		for _, value := range f.Enum {
			text := string(value)
			if value[0] == '"' {
				text = jsonscan.Text(value)
			}
			enums[name] = append(enums[name], text)
		}
	}
	return enums
}

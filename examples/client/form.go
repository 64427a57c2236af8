// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-psi/psi/jsonschema"
)

// field is a field of a form: flat, and of a primitive type or a list of enums.
type field struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Type        string          `json:"type"`
	Default     json.RawMessage `json:"default"`
	Items       *choices        `json:"items"`
	choices

	name     string
	required bool
	schema   json.RawMessage
}

// choices are an enum in any of the ways in which revisions write it.
type choices struct {
	Enum  []string `json:"enum"`
	Names []string `json:"enumNames"`
	OneOf []choice `json:"oneOf"`
	AnyOf []choice `json:"anyOf"`
}

type choice struct {
	Value string `json:"const"`
	Title string `json:"title"`
}

func (c *choices) all() []choice {
	all := slices.Concat(c.OneOf, c.AnyOf)
	for i, value := range c.Enum {
		named := choice{Value: value}
		if i < len(c.Names) {
			named.Title = c.Names[i]
		}
		all = append(all, named)
	}
	return all
}

// options are what the user can choose from, nil if anything goes.
func (f *field) options() []choice {
	if f.Items != nil {
		return f.Items.all()
	}
	return f.all()
}

// fieldsOf are the fields in the order in which the server wrote them.
func fieldsOf(schema json.RawMessage) ([]*field, error) {
	var root struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &root); err != nil || root.Properties == nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(root.Properties))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("the fields of the form are not an object")
	}
	var fields []*field
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		f := &field{name: name.(string)} // JSON has no other keys
		if err := dec.Decode(&f.schema); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(f.schema, f); err != nil {
			return nil, fmt.Errorf("the field %q of the form: %w", f.name, err)
		}
		f.required = slices.Contains(root.Required, f.name)
		fields = append(fields, f)
	}
	return fields, nil
}

// parse makes a value of what the user wrote, and holds it to the field's schema.
func (f *field) parse(line string) (json.RawMessage, error) {
	value, err := f.value(line)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	schema, err := jsonschema.Compile(f.schema, nil)
	if err != nil {
		return raw, nil //nolint:nilerr // a schema that nobody can read is the server's to check
	}
	return raw, schema.Validate(raw)
}

func (f *field) value(line string) (any, error) {
	switch f.Type {
	case "integer", "number":
		if _, err := strconv.ParseFloat(line, 64); err != nil || !json.Valid([]byte(line)) {
			return nil, errors.New("this is not a number")
		}
		return json.Number(line), nil
	case "boolean":
		yes := slices.Contains([]string{"y", "yes", "true"}, strings.ToLower(line))
		if !yes && !slices.Contains([]string{"n", "no", "false"}, strings.ToLower(line)) {
			return nil, errors.New("please say yes or no")
		}
		return yes, nil
	case "array":
		values := []string{}
		for part := range strings.SplitSeq(line, ",") {
			values = append(values, f.chosen(strings.TrimSpace(part)))
		}
		return values, nil
	}
	return f.chosen(line), nil
}

// chosen is the value that a number stands for, if there is a choice.
func (f *field) chosen(line string) string {
	options := f.options()
	if slices.ContainsFunc(options, func(c choice) bool { return c.Value == line }) {
		return line
	}
	if i, err := strconv.Atoi(line); err == nil && 1 <= i && i <= len(options) {
		return options[i-1].Value
	}
	return line
}

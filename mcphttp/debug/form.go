// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A field is an input of a form that is generated from a JSON Schema.
type field struct {
	Name        string   `json:"name"`
	Label       string   `json:"label"`
	Description string   `json:"description,omitempty"`
	Kind        string   `json:"kind"` // text, lines, number, choice, choices, json
	Hint        string   `json:"hint,omitempty"`
	Choices     []choice `json:"choices,omitempty"`
	Value       string   `json:"value,omitempty"`
	Required    bool     `json:"required,omitzero"`
	InputType   string   `json:"-"` // HTML input type
	IsConsent   bool     `json:"-"` // must not be left out: it would then be true
}

// Chosen reports whether one of the choices is the default. If none is, a required field starts
// without a choice: the form must not answer for the user.
func (f field) Chosen() bool {
	return slices.ContainsFunc(f.Choices, func(c choice) bool { return c.Is })
}

// questionOf returns the inputs for the answer to a question. A boolean that would be true if
// the user did nothing starts without a choice: consent is an act.
func questionOf(schema json.RawMessage) []field {
	fields := fieldsOf(schema)
	for i, f := range fields {
		if f.Kind == "choice" && f.Value == "true" && f.Choices[0].Value == "true" {
			fields[i].Value, fields[i].Choices[0].Is, fields[i].Required, fields[i].IsConsent = "", false, true, true
		}
	}
	return fields
}

// A choice is a value of an enum, as JSON.
type choice struct {
	Value string `json:"value"`
	Label string `json:"label"`
	Is    bool   `json:"is,omitzero"` // is the default
}

// A property is the part of a schema that a field is generated from.
type property struct {
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Type        json.RawMessage   `json:"type"`
	Format      string            `json:"format"`
	Enum        []json.RawMessage `json:"enum"`
	EnumNames   []string          `json:"enumNames"`
	OneOf       []constant        `json:"oneOf"`
	Default     json.RawMessage   `json:"default"`
	MaxLength   *int              `json:"maxLength"`
	Minimum     json.RawMessage   `json:"minimum"`
	Maximum     json.RawMessage   `json:"maximum"`
	Items       *struct {
		Enum  []json.RawMessage `json:"enum"`
		AnyOf []constant        `json:"anyOf"`
	} `json:"items"`
}

type constant struct {
	Const json.RawMessage `json:"const"`
	Title string          `json:"title"`
}

// maxFields is the maximum number of inputs of a form. A schema with more properties has a single
// input for JSON.
const maxFields = 100

// fieldsOf returns the inputs for the object that a schema describes, in the order of the schema.
// It returns nil if the schema has no properties, or too many.
func fieldsOf(schema json.RawMessage) []field {
	var object struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(schema, &object) != nil || len(object.Properties) == 0 {
		return nil
	}
	var fields []field
	dec := jsontext.NewDecoder(bytes.NewReader(object.Properties))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for dec.PeekKind() == '"' {
		t, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		name := t.String()
		raw, err := dec.ReadValue()
		if err != nil || len(fields) == maxFields {
			return nil
		}
		f := fieldOf(name, json.RawMessage(raw))
		f.Required = slices.Contains(object.Required, name)
		fields = append(fields, f)
	}
	return fields
}

func fieldOf(name string, schema json.RawMessage) field {
	var p property
	f := field{Name: name, Label: name, Kind: "json", Hint: "JSON"}
	if json.Unmarshal(schema, &p) != nil {
		return f // such as true
	}
	f.Description = p.Description
	if p.Title != "" && p.Title != name {
		f.Label = p.Title + " (" + name + ")"
	}
	f.Value = textOf(p.Default)
	var kind string
	_ = json.Unmarshal(p.Type, &kind) // if there are several types, the input is JSON
	switch choices := p.choices(); {
	case len(choices) > 0:
		f.Kind, f.Hint, f.Choices = "choice", "", marked(choices, p.Default)
	case kind == "string":
		f.setText(&p)
	case kind == "integer" || kind == "number":
		f.Kind, f.Hint = "number", p.bounds(kind)
	case kind == "boolean":
		f.Kind, f.Hint, f.Choices = "choice", "", marked([]choice{{Value: "true", Label: "true"}, {Value: "false", Label: "false"}}, p.Default)
	case kind == "array" && p.Items != nil && len(choicesOf(p.Items.Enum, nil, p.Items.AnyOf)) > 0:
		f.Kind, f.Hint, f.Choices = "choices", "", marked(choicesOf(p.Items.Enum, nil, p.Items.AnyOf), p.Default)
	default:
		f.Value = string(p.Default)
		if kind != "" {
			f.Hint = "JSON " + kind
		}
	}
	return f
}

func (p *property) choices() []choice { return choicesOf(p.Enum, p.EnumNames, p.OneOf) }

func choicesOf(enum []json.RawMessage, names []string, constants []constant) (all []choice) {
	for i, v := range enum {
		c := choice{Value: string(v), Label: textOf(v)}
		if i < len(names) && names[i] != "" {
			c.Label = names[i]
		}
		all = append(all, c)
	}
	if all != nil {
		return all
	}
	for _, c := range constants {
		if c.Const == nil {
			return nil // not a oneOf of constants
		}
		label := textOf(c.Const)
		if c.Title != "" && c.Title != label {
			label = c.Title + " (" + label + ")"
		}
		all = append(all, choice{Value: string(c.Const), Label: label})
	}
	return all
}

// marked marks the default choices: byDefault is one value or a list of values.
func marked(choices []choice, byDefault json.RawMessage) []choice {
	var several []json.RawMessage
	_ = json.Unmarshal(byDefault, &several)
	for i, c := range choices {
		choices[i].Is = c.Value == string(byDefault) || slices.ContainsFunc(several, func(v json.RawMessage) bool { return string(v) == c.Value })
	}
	return choices
}

// setText chooses the input for a string.
func (f *field) setText(p *property) {
	f.Kind, f.Hint, f.InputType = "text", p.Format, "text"
	switch p.Format {
	case "email":
		f.InputType = "email"
	case "uri":
		f.InputType = "url"
	case "date":
		f.InputType = "date"
	case "":
		f.Hint = "text"
		if p.MaxLength == nil || *p.MaxLength > 200 {
			f.Kind = "lines"
		}
	}
}

func (p *property) bounds(kind string) string {
	hint := kind
	if p.Minimum != nil {
		hint += ", from " + string(p.Minimum)
	}
	if p.Maximum != nil {
		hint += ", to " + string(p.Maximum)
	}
	return hint
}

// textOf returns the text of a JSON string, and other values as JSON.
func textOf(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil && len(v) > 0 && v[0] == '"' {
		return s
	}
	return string(v)
}

// The names of form inputs. The names of fields have a prefix, because a schema may use any name.
const (
	fieldPrefix = "f."
	rawField    = "json" // the whole object
)

// objectOf returns the object entered in a form. Fields without a value are omitted, unless they
// are required and may be empty.
func objectOf(form url.Values, fields []field) (json.RawMessage, error) {
	if raw := strings.TrimSpace(form.Get(rawField)); raw != "" {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(raw), &object); err != nil || object == nil {
			return nil, failure{400, fmt.Sprintf("the arguments are not a JSON object: %v", err)}
		}
		return json.RawMessage(raw), nil
	}
	object := map[string]json.RawMessage{}
	for _, f := range fields {
		v, err := f.valueOf(form[fieldPrefix+f.Name])
		if err != nil {
			return nil, failure{400, fmt.Sprintf("%s: %v", f.Name, err)}
		}
		if v == nil && f.IsConsent {
			return nil, failure{400, f.Name + ": choose true or false"}
		}
		if v != nil {
			object[f.Name] = v
		}
	}
	return json.Marshal(object)
}

// valueOf returns the value of a field as JSON, or nil if it has none.
func (f *field) valueOf(values []string) (json.RawMessage, error) {
	var value string
	if len(values) > 0 {
		value = values[0]
	}
	if f.Kind == "text" || f.Kind == "lines" {
		if value == "" && !f.Required {
			return nil, nil
		}
		return json.Marshal(strings.ReplaceAll(value, "\r\n", "\n"))
	}
	if f.Kind == "choices" {
		value = "[" + strings.Join(values, ",") + "]"
		if len(values) == 0 && !f.Required {
			return nil, nil
		}
	}
	if value = strings.TrimSpace(value); value == "" {
		return nil, nil
	}
	if !json.Valid([]byte(value)) {
		return nil, fmt.Errorf("%.80q is not %s", value, map[bool]string{true: "a number", false: "JSON"}[f.Kind == "number"])
	}
	return json.RawMessage(value), nil
}

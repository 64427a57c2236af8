// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-psi/psi/jsonschema"
)

// A form is a schema allowed in elicitation/create, with its validator.
type form struct {
	schema   json.RawMessage
	compiled *jsonschema.Schema
}

// forms caches forms by type, because inferring and compiling a schema is slow.
var forms sync.Map // map[reflect.Type]func() (*form, error)

func formFor[T any]() (*form, error) {
	t := reflect.TypeFor[T]()
	made, ok := forms.Load(t)
	if !ok {
		made, _ = forms.LoadOrStore(t, sync.OnceValues(func() (*form, error) {
			schema, err := jsonschema.ForInput[T]()
			if err != nil {
				return nil, err
			}
			return newForm(schema)
		}))
	}
	return made.(func() (*form, error))()
}

// newForm compiles a schema and checks that clients can show it as a form
// (client/elicitation): a flat object of primitive fields and lists of enums.
func newForm(schema json.RawMessage) (*form, error) {
	var root map[string]json.RawMessage
	if err := unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("a form's schema must be an object: %w", err)
	}
	if string(root["type"]) != `"object"` {
		return nil, errors.New(`a form's schema must have "type":"object" at its root`)
	}
	delete(root, "additionalProperties")
	if err := onlyKeywords(root, "", rootKeywords); err != nil {
		return nil, err
	}
	var fields map[string]map[string]json.RawMessage
	if err := unmarshal(root["properties"], &fields); err != nil {
		return nil, fmt.Errorf("a form's fields must be objects: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if err := checkField(fields[name], "/properties/"+name); err != nil {
			return nil, err
		}
	}
	flat := mustMarshal(orderedForm(root))
	compiled, err := jsonschema.Compile(flat, answerOptions)
	if err != nil {
		return nil, err
	}
	return &form{flat, compiled}, nil
}

// answerOptions accept null for optional fields that the user left empty.
var answerOptions = &jsonschema.Options{OptionalNull: true}

// orderedForm returns a value that encodes root with its fields in their original order.
func orderedForm(root map[string]json.RawMessage) any {
	return struct {
		Schema     json.RawMessage `json:"$schema,omitzero"`
		Type       json.RawMessage `json:"type"`
		Title      json.RawMessage `json:"title,omitzero"`
		About      json.RawMessage `json:"description,omitzero"`
		Properties json.RawMessage `json:"properties"`
		Required   json.RawMessage `json:"required,omitzero"`
	}{root["$schema"], root["type"], root["title"], root["description"], root["properties"], root["required"]}
}

var (
	rootKeywords   = words("$schema type title description properties required")
	commonKeywords = "type title description default "
	fieldKeywords  = map[string][]string{
		"string":  words(commonKeywords + "minLength maxLength pattern format enum enumNames oneOf"),
		"number":  words(commonKeywords + "minimum maximum"),
		"integer": words(commonKeywords + "minimum maximum"),
		"boolean": words(commonKeywords),
		"array":   words(commonKeywords + "items minItems maxItems"),
	}
	formFormats = words("email uri date date-time")
)

func words(s string) []string { return strings.Fields(s) }

func checkField(field map[string]json.RawMessage, at string) error {
	var kind, format string
	_ = unmarshal(field["type"], &kind)
	_ = unmarshal(field["format"], &format)
	allowed, ok := fieldKeywords[kind]
	switch {
	case !ok:
		return fmt.Errorf("a form cannot have the field %s: its type must be string, number, integer, boolean or a list of enums", at)
	case format != "" && !slices.Contains(formFormats, format):
		return fmt.Errorf("a form cannot have the format %q at %s: expected one of %s", format, at, strings.Join(formFormats, ", "))
	case kind == "array":
		if err := checkChoices(field["items"], at); err != nil {
			return err
		}
	}
	return onlyKeywords(field, at, allowed)
}

// checkChoices returns an error unless the items of a list are an enum.
func checkChoices(raw json.RawMessage, at string) error {
	var items map[string]json.RawMessage
	if unmarshal(raw, &items) == nil && (items["enum"] != nil || items["anyOf"] != nil) {
		return nil
	}
	return fmt.Errorf("a form cannot have a list at %s unless its items are an enum of strings", at)
}

func onlyKeywords(schema map[string]json.RawMessage, at string, allowed []string) error {
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		if !slices.Contains(allowed, keyword) {
			return fmt.Errorf("a form cannot have the keyword %q at %q: expected one of %s", keyword, at, strings.Join(allowed, ", "))
		}
	}
	return nil
}

// checkAnswer returns an error if answer is not a valid answer to q, which has the given
// key. Declining is a valid answer.
func checkAnswer(ctx context.Context, key string, q InputRequest, answer json.RawMessage) error {
	switch q.Method {
	case MethodCreateMessage:
		return decodeAnswer(key, answer, new(CreateMessageResult))
	case MethodListRoots:
		return decodeAnswer(key, answer, new(ListRootsResult))
	case MethodElicit:
		return checkForm(ctx, key, q.Params, answer)
	}
	return nil
}

func checkForm(ctx context.Context, key string, params, answer json.RawMessage) error {
	given, err := acceptElicit(key, answer)
	if errors.Is(err, ErrDeclined) || errors.Is(err, ErrCancelled) {
		return nil
	}
	var p ElicitParams
	if err != nil || decode(params, &p) != nil {
		return err
	}
	form, err := compileForm(&p, answerOptions)
	if form == nil || err != nil {
		return nil //nolint:nilerr // the handler has made the form: it knows what it accepts
	}
	_, err = fillForm(ctx, form, given.Content)
	return err
}

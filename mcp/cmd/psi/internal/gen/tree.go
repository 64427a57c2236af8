// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/schematree"
)

// An object is a JSON object that keeps the order of its members, which becomes the order
// of struct fields.
type object struct {
	names  []string
	values map[string]any
}

// parse decodes valid JSON without duplicate names into nil, bool, json.Number, string, []any
// and *object. It returns nil for invalid JSON.
func parse(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := parseValue(d)
	if err != nil {
		return nil
	}
	return v
}

func parseValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return parseObject(d)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return token, nil
}

func parseObject(d *json.Decoder) (any, error) {
	obj := &object{values: map[string]any{}}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // the decoder accepts nothing else
		v, err := parseValue(d)
		if err != nil {
			return nil, err
		}
		obj.names = append(obj.names, name)
		obj.values[name] = v
	}
	_, err := d.Token()
	return obj, err
}

// asObject returns v if it is an object, and an empty object otherwise.
func asObject(v any) *object {
	if obj, ok := v.(*object); ok {
		return obj
	}
	return &object{}
}

func (o *object) has(name string) bool { _, ok := o.values[name]; return ok }

func (o *object) text(name string) string { s, _ := o.values[name].(string); return s }

func (o *object) list(name string) []any { l, _ := o.values[name].([]any); return l }

// strings returns the strings in a list, or a single string as a list.
func (o *object) strings(name string) (list []string) {
	if s, ok := o.values[name].(string); ok {
		return []string{s}
	}
	for _, v := range o.list(name) {
		if s, ok := v.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

// lookup returns the value at a JSON pointer.
func lookup(v any, pointer string) (any, bool) {
	for _, token := range schematree.Split(pointer) {
		switch c := v.(type) {
		case *object:
			next, ok := c.values[token]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// compact returns the JSON of a scalar or an empty array, and "" for other values.
func compact(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case string:
		return string(jsonscan.AppendString(nil, v))
	case []any:
		if len(v) == 0 {
			return "[]"
		}
	}
	return ""
}
